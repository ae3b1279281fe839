//! Addresses and ports of services: no two services have the same.
//!
//! Who has what is derived from the services themselves, and followed through their events, so
//! that whatever way a service goes, what it had is free again. Writes of services take turns: a
//! service is visible, and so counted, before the next one is given anything.

mod network;
mod state;

use std::net::Ipv4Addr;

use tokio::sync::{Mutex, MutexGuard};
use windlass_core::{Doc, Env, GroupKind};

use crate::registry::{Allocation, Resource};
use crate::storage::Storage;
use state::{NODE_PORTS, State};
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::status::Status;

pub use network::{ServiceNetwork, ServiceNetworkError};

/// Who has which address and port.
#[derive(Debug, Default)]
pub(crate) struct Allocator {
    /// The network that the server was started with.
    network: ServiceNetwork,
    /// Held by the one write of a service that is on its way.
    turn: Mutex<()>,
    /// `None` until the first turn.
    state: parking_lot::Mutex<Option<State>>,
}

/// The right to write a service, and to be given addresses and ports for it.
pub(crate) struct Turn<'a> {
    _turn: MutexGuard<'a, ()>,
    allocator: &'a Allocator,
    /// The networks that addresses come from, the largest first.
    networks: Vec<ServiceNetwork>,
    /// Where addresses may be noted as taken by others than services.
    storage: Storage,
    env: &'a Env,
}

/// The group of ServiceCIDRs and IPAddresses.
const NETWORKING: &str = "networking.k8s.io";

/// The networks of the ServiceCIDRs that are ready; that of the server if there are none. One without a
/// condition counts as ready, as upstream has it where no controller runs.
fn networks(storage: &Storage, own: ServiceNetwork) -> Vec<ServiceNetwork> {
    let snapshot = storage.snapshot_of(NETWORKING, "servicecidrs");
    let mut networks: Vec<ServiceNetwork> = Vec::new();
    for entry in snapshot.iter().filter(|entry| is_ready(entry.doc())) {
        let cidrs = entry.doc().at("/spec/cidrs").items().iter();
        let parsed = cidrs.filter_map(|text| text.as_str()?.parse::<ServiceNetwork>().ok());
        networks.extend(parsed);
    }
    if networks.is_empty() {
        networks.push(own);
    }
    // Upstream tries the one with the most addresses first.
    networks.sort_by_key(|network| network.prefix_bits());
    networks
}

fn is_ready(service_cidr: &Doc) -> bool {
    let conditions = service_cidr.at("/status/conditions").items();
    let ready = conditions
        .iter()
        .find(|known| known.str_at("/type") == "Ready");
    ready.is_none_or(|condition| condition.str_at("/status") == "True")
}

impl Allocator {
    /// An allocator of the addresses of a network.
    pub(crate) fn new(network: ServiceNetwork) -> Self {
        Self {
            network,
            ..Self::default()
        }
    }

    /// The network that the server was started with.
    pub(crate) fn network(&self) -> ServiceNetwork {
        self.network
    }

    /// Waits for the writes of services before this one. Other kinds need no turn.
    pub(crate) async fn turn<'a>(
        &'a self,
        resource: &Resource,
        storage: &Storage,
        env: &'a Env,
    ) -> Option<Turn<'a>> {
        if resource.needs.allocation == Allocation::Nothing {
            return None;
        }
        let turn = self.turn.lock().await;
        let mut state = self.state.lock();
        let is_current = state.as_mut().is_some_and(State::catch_up);
        if !is_current {
            *state = State::read(storage, &resource.shelf);
        }
        drop(state);
        Some(Turn {
            _turn: turn,
            allocator: self,
            networks: networks(storage, self.network),
            storage: storage.clone(),
            env,
        })
    }
}

impl Turn<'_> {
    /// A service with the addresses and ports that it lacks. What it names itself must be free.
    pub(crate) fn assign(&self, service: Doc) -> Result<Doc, Status> {
        let mut state = self.allocator.state.lock();
        let Some(state) = state.as_mut() else {
            return Err(Status::internal("the services cannot be followed"));
        };
        let mut errors = FieldErrors::default();
        let (name, owner) = (service.meta().name().to_owned(), service.meta().key());
        let assigning = Assigning {
            state,
            owner: owner.as_str(),
            networks: &self.networks,
            storage: &self.storage,
            env: self.env,
            errors: &mut errors,
        };
        let service = assigning.run(service)?;
        if errors.is_empty() {
            return Ok(service);
        }
        let kind = GroupKind::new("", "Service");
        Err(Status::invalid(&kind, &name, &errors))
    }
}

/// One service that is being given what it lacks.
struct Assigning<'a> {
    state: &'a State,
    /// Namespace and name of the service.
    owner: &'a str,
    networks: &'a [ServiceNetwork],
    storage: &'a Storage,
    env: &'a Env,
    errors: &'a mut FieldErrors,
}

impl Assigning<'_> {
    fn run(mut self, service: Doc) -> Result<Doc, Status> {
        let spec = service.at("/spec");
        if spec.str_at("/type") == "ExternalName" {
            return Ok(service);
        }
        let service = self.address(service)?;
        self.ports(service)
    }

    fn address(&mut self, service: Doc) -> Result<Doc, Status> {
        let asked = service.str_at("/spec/clusterIP");
        if asked == "None" {
            return Ok(service);
        }
        if !asked.is_empty() {
            self.check_address(asked);
            return Ok(service);
        }
        let full = || Status::internal("failed to allocate a serviceIP: range is full");
        let address = self.free_address().ok_or_else(full)?;
        let address = address.to_string();
        let service = windlass_rules::edit::put(service, "/spec/clusterIP", address.as_str());
        let addresses = windlass_core::doc!([address]);
        Ok(windlass_rules::edit::put(
            service,
            "/spec/clusterIPs",
            addresses,
        ))
    }

    fn free_address(&self) -> Option<Ipv4Addr> {
        let mut networks = self.networks.iter();
        networks.find_map(|network| {
            let is_free = |address: Ipv4Addr| !self.is_noted(address);
            self.state.free_address(*network, self.env, is_free)
        })
    }

    /// Returns true if an IPAddress says that an address is taken, by somebody else than the service.
    fn is_noted(&self, address: Ipv4Addr) -> bool {
        let name = address.to_string();
        let found = self.storage.find(NETWORKING, "ipaddresses", "", &name);
        found.is_some_and(|object| {
            let parent = object.at("/spec/parentRef");
            let (namespace, name) = (parent.str_at("/namespace"), parent.str_at("/name"));
            format!("{namespace}/{name}") != self.owner || parent.str_at("/resource") != "services"
        })
    }

    fn check_address(&mut self, asked: &str) {
        let networks = self.networks;
        let parsed: Option<Ipv4Addr> = asked.parse().ok();
        let parsed = parsed.filter(|at| networks.iter().any(|network| network.contains(*at)));
        let why = match parsed {
            None => "the provided network does not match the current range",
            Some(address)
                if self.state.is_address_taken(address, self.owner) || self.is_noted(address) =>
            {
                "provided IP is already allocated"
            }
            Some(_) => return,
        };
        let path = FieldPath::new("spec").child("clusterIPs");
        let detail = format!("failed to allocate IP {asked}: {why}");
        self.errors
            .invalid(&path, windlass_core::doc!([asked]), detail);
    }

    /// Ports with ports of the nodes. Two with one number but different protocols share one.
    fn ports(&mut self, service: Doc) -> Result<Doc, Status> {
        let is_served = windlass_rules::kinds::wants_node_ports(&service);
        let ports = service.at("/spec/ports").items();
        let mut given: Vec<(i64, i64)> = Vec::new();
        let mut assigned = Vec::with_capacity(ports.len());
        for (index, port) in ports.iter().enumerate() {
            let number = port.at("/port").as_i64().unwrap_or(0);
            let asked = port.at("/nodePort").as_i64().unwrap_or(0);
            let before = given.iter().find(|(known, _)| *known == number);
            let node_port = match (asked, before) {
                (0, _) if !is_served => {
                    assigned.push(port.clone());
                    continue;
                }
                (0, Some((_, node_port))) => *node_port,
                (0, None) => self.free_port(&given)?,
                (asked, _) => {
                    self.check_port(index, asked);
                    asked
                }
            };
            given.push((number, node_port));
            assigned.push(windlass_rules::edit::put(
                port.clone(),
                "/nodePort",
                node_port,
            ));
        }
        Ok(match assigned.is_empty() {
            true => service,
            false => windlass_rules::edit::put(service, "/spec/ports", assigned),
        })
    }

    fn free_port(&self, given: &[(i64, i64)]) -> Result<i64, Status> {
        let is_given = |port: i64| given.iter().any(|(_, given)| *given == port);
        let free = self.state.free_port(self.env, is_given);
        free.ok_or_else(|| Status::internal("failed to allocate a nodePort: range is full"))
    }

    fn check_port(&mut self, index: usize, asked: i64) {
        let path = FieldPath::new("spec").child("ports").index(index);
        let path = path.child("nodePort");
        if !NODE_PORTS.contains(&asked) {
            let (first, last) = (NODE_PORTS.start(), NODE_PORTS.end());
            let detail = format!(
                "provided port is not in the valid range. The range of valid ports is \
                 {first}-{last}"
            );
            self.errors.invalid(&path, asked, detail);
        } else if self.state.is_port_taken(asked, self.owner) {
            self.errors
                .invalid(&path, asked, "provided port is already allocated");
        }
    }
}
