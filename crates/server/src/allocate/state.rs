//! What is taken, as the events of services tell.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use windlass_core::{Doc, Env};
use windlass_store::{Event, EventKind, Resource as Shelf, Watch};

use super::network::ServiceNetwork;
use crate::storage::Storage;

/// The ports of the nodes that services may have.
pub(super) const NODE_PORTS: RangeInclusive<i64> = 30_000..=32_767;

/// Low ports are for those who ask for one; so many at most, as upstream has it.
const STATIC_PORTS: i64 = 86;

/// Who has which address and port, up to some revision.
#[derive(Debug)]
pub(super) struct State {
    addresses: BTreeMap<Ipv4Addr, Arc<str>>,
    ports: BTreeMap<i64, Arc<str>>,
    /// What happened since.
    events: Watch,
}

impl State {
    /// What the services have now; `None` if they cannot be followed.
    pub(super) fn read(storage: &Storage, shelf: &Shelf) -> Option<Self> {
        let services = storage.snapshot(shelf);
        let mut state = Self {
            addresses: BTreeMap::new(),
            ports: BTreeMap::new(),
            events: storage.watch(shelf, services.revision()).ok()?,
        };
        for entry in &services {
            state.take(entry.key.as_str(), entry.doc());
        }
        Some(state)
    }

    /// Follows what happened; `false` if that is no longer known.
    pub(super) fn catch_up(&mut self) -> bool {
        loop {
            match self.events.try_next() {
                Ok(Some(event)) => self.follow(&event),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn follow(&mut self, event: &Event) {
        let owner = event.key().as_str();
        if let Some(previous) = &event.previous {
            self.release(owner, previous.doc());
        }
        if event.kind == EventKind::Put {
            self.take(owner, event.entry.doc());
        }
    }

    fn take(&mut self, owner: &str, service: &Doc) {
        for address in addresses(service) {
            self.addresses.insert(address, owner.into());
        }
        for port in ports(service) {
            self.ports.insert(port, owner.into());
        }
    }

    fn release(&mut self, owner: &str, service: &Doc) {
        for address in addresses(service) {
            if is_owner(self.addresses.get(&address), owner) {
                self.addresses.remove(&address);
            }
        }
        for port in ports(service) {
            if is_owner(self.ports.get(&port), owner) {
                self.ports.remove(&port);
            }
        }
    }

    pub(super) fn is_address_taken(&self, address: Ipv4Addr, owner: &str) -> bool {
        let found = self.addresses.get(&address);
        found.is_some() && !is_owner(found, owner)
    }

    pub(super) fn is_port_taken(&self, port: i64, owner: &str) -> bool {
        let found = self.ports.get(&port);
        found.is_some() && !is_owner(found, owner)
    }

    /// A free address: any, and the next one if that is taken.
    pub(super) fn free_address(
        &self,
        network: ServiceNetwork,
        env: &Env,
        is_free: impl Fn(Ipv4Addr) -> bool,
    ) -> Option<Ipv4Addr> {
        let mut candidates = network.candidates(env);
        candidates.find(|address| !self.addresses.contains_key(address) && is_free(*address))
    }

    /// A free port that was not given a moment ago.
    pub(super) fn free_port(&self, env: &Env, is_given: impl Fn(i64) -> bool) -> Option<i64> {
        let (first, last) = (NODE_PORTS.start() + STATIC_PORTS, *NODE_PORTS.end());
        let count = last - first + 1;
        let start = env.random_below(count as u64) as i64;
        let dynamic = (0..count).map(|step| first + (start + step) % count);
        dynamic
            .chain(*NODE_PORTS.start()..first)
            .find(|port| !self.ports.contains_key(port) && !is_given(*port))
    }
}

fn is_owner(found: Option<&Arc<str>>, owner: &str) -> bool {
    found.is_some_and(|found| **found == *owner)
}

/// The addresses that a service has.
fn addresses(service: &Doc) -> impl Iterator<Item = Ipv4Addr> + '_ {
    let many = service.at("/spec/clusterIPs").items().iter();
    let all = many.chain([service.at("/spec/clusterIP")]);
    all.filter_map(|address| address.as_str()?.parse().ok())
}

/// The ports of the nodes that a service has.
fn ports(service: &Doc) -> impl Iterator<Item = i64> + '_ {
    let ports = service.at("/spec/ports").items().iter();
    let numbers = ports.filter_map(|port| port.at("/nodePort").as_i64());
    let health = service.at("/spec/healthCheckNodePort").as_i64();
    numbers.chain(health).filter(|port| *port != 0)
}
