//! The connections of a server: how many there may be, and which one ends when there are too many.
//!
//! A connection is unauthenticated until it has shown a good client certificate or a request on it
//! a good token. Unauthenticated connections have a small pool of their own. When it is full, the
//! oldest of them ends for the new one, an idle one first: so an administrator or a health check
//! still gets in, and nobody waits to be accepted. Authenticated connections are never ended for
//! others.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::fair::FlowKey;
use super::progress::Progress;
use crate::metrics::{ConnectionMetrics, ShedReason};
use crate::peer::Connection;
use windlass_access::{MASTERS, User};

/// Connections that have shown no credentials.
pub(super) const UNAUTHENTICATED_LIMIT: usize = 1024;
/// Those of one address: half, because all clients on this machine share one.
pub(super) const ADDRESS_LIMIT: usize = UNAUTHENTICATED_LIMIT / 2;
/// Connections that have shown credentials.
const AUTHENTICATED_LIMIT: usize = 2944;
/// More of them for members of `system:masters`. All together are 4096.
const MASTERS_RESERVE: usize = 128;
/// Authenticated connections of one user; further ones count as unauthenticated.
const USER_LIMIT: usize = 512;

/// The group of everybody who has shown credentials.
const AUTHENTICATED: &str = "system:authenticated";

/// All connections of a listener.
#[derive(Debug)]
pub(super) struct Connections {
    pools: Mutex<Pools>,
    /// Bytes of answers that are not sent yet.
    unread: Arc<AtomicUsize>,
    metrics: Arc<ConnectionMetrics>,
}

#[derive(Debug, Default)]
struct Pools {
    next: u64,
    /// By age.
    unauthenticated: BTreeMap<u64, Arc<Peer>>,
    addresses: HashMap<IpAddr, usize>,
    authenticated: usize,
    users: HashMap<String, usize>,
}

/// One connection. Requests carry it among their extensions.
#[derive(Debug)]
pub(super) struct Peer {
    id: u64,
    ip: IpAddr,
    /// The network that its connections are counted by.
    address: IpAddr,
    connections: Arc<Connections>,
    /// The user of an authenticated connection.
    user: Mutex<Option<String>>,
    is_authenticated: AtomicBool,
    /// The flow of an authenticated connection.
    flow: OnceLock<FlowKey>,
    shed: Notify,
    pub(super) progress: Arc<Progress>,
}

/// Counts a connection as long as it is held.
#[derive(Debug)]
pub(super) struct Member(pub(super) Arc<Peer>);

impl Connections {
    pub(super) fn new(metrics: Arc<ConnectionMetrics>) -> Arc<Self> {
        Arc::new(Self {
            pools: Mutex::default(),
            unread: Arc::default(),
            metrics,
        })
    }

    /// Takes a new connection in. Another one may end for it.
    pub(super) fn admit(self: &Arc<Self>, ip: IpAddr) -> Member {
        let address = network(ip);
        let mut pools = self.pools.lock();
        let of_address = pools.addresses.get(&address).copied().unwrap_or(0);
        if of_address >= ADDRESS_LIMIT {
            self.shed(&mut pools, Some(address), ShedReason::Address);
        } else if pools.unauthenticated.len() >= UNAUTHENTICATED_LIMIT {
            self.shed(&mut pools, None, ShedReason::Total);
        }
        let id = pools.next;
        pools.next += 1;
        let peer = Arc::new(Peer {
            id,
            ip,
            address,
            connections: Arc::clone(self),
            user: Mutex::default(),
            is_authenticated: AtomicBool::new(false),
            flow: OnceLock::new(),
            shed: Notify::new(),
            progress: Arc::new(Progress::new(&self.unread)),
        });
        pools.unauthenticated.insert(id, Arc::clone(&peer));
        *pools.addresses.entry(address).or_default() += 1;
        self.metrics.opened();
        Member(peer)
    }

    /// Ends one unauthenticated connection because the process has no descriptors left.
    pub(super) fn shed_for_descriptors(&self) {
        self.shed(&mut self.pools.lock(), None, ShedReason::Descriptors);
    }

    /// Ends the oldest unauthenticated connection of an address or of all, an idle one first.
    fn shed(&self, pools: &mut Pools, address: Option<IpAddr>, why: ShedReason) {
        let of_address = |peer: &&Arc<Peer>| address.is_none_or(|known| peer.address == known);
        let mut all = pools.unauthenticated.values().filter(of_address);
        let mut idle = pools.unauthenticated.values().filter(of_address);
        let oldest_idle = idle.find(|peer| peer.progress.is_idle());
        let Some(peer) = oldest_idle.or_else(|| all.next()).cloned() else {
            return;
        };
        pools.leave(&peer);
        peer.shed.notify_one();
        self.metrics.shed(why);
    }
}

impl Pools {
    /// Takes a connection out of the unauthenticated ones; false if it was not among them.
    fn leave(&mut self, peer: &Peer) -> bool {
        let was_in = self.unauthenticated.remove(&peer.id).is_some();
        if was_in {
            release(&mut self.addresses, &peer.address);
        }
        was_in
    }
}

/// Counts one less, and forgets a count of none.
fn release<K, Q>(counts: &mut HashMap<K, usize>, key: &Q)
where
    K: std::hash::Hash + Eq + std::borrow::Borrow<Q>,
    Q: std::hash::Hash + Eq + ?Sized,
{
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl Connection for Peer {
    fn ip(&self) -> IpAddr {
        self.ip
    }

    fn authenticated(&self, user: &User) {
        if self.is_authenticated.load(Ordering::Relaxed) || !user.is_in(AUTHENTICATED) {
            return;
        }
        let mut pools = self.connections.pools.lock();
        let is_master = user.is_in(MASTERS);
        let limit = AUTHENTICATED_LIMIT + if is_master { MASTERS_RESERVE } else { 0 };
        let of_user = pools.users.get(&user.name).copied().unwrap_or(0);
        if pools.authenticated >= limit || (of_user >= USER_LIMIT && !is_master) {
            return;
        }
        if !pools.leave(self) {
            return;
        }
        pools.authenticated += 1;
        *pools.users.entry(user.name.clone()).or_default() += 1;
        *self.user.lock() = Some(user.name.clone());
        let _ = self.flow.set(match is_master {
            true => FlowKey::Exempt,
            false => FlowKey::User(user.name.as_str().into()),
        });
        self.is_authenticated.store(true, Ordering::Relaxed);
        self.connections.metrics.authenticated();
    }
}

impl Peer {
    /// The flow that the work of the connection is charged to.
    pub(super) fn flow_key(&self) -> FlowKey {
        self.flow
            .get()
            .cloned()
            .unwrap_or(FlowKey::Address(self.address))
    }

    /// Waits until the connection has to end for another one.
    pub(super) async fn until_shed(&self) {
        self.shed.notified().await;
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let peer = &self.0;
        let mut pools = peer.connections.pools.lock();
        pools.leave(peer);
        let user = peer.user.lock().take();
        if let Some(user) = &user {
            pools.authenticated -= 1;
            release(&mut pools.users, user.as_str());
        }
        peer.connections.metrics.closed(user.is_some());
    }
}

/// An address as limits see it: whoever has one IPv6 address has the 64 bits behind its prefix.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => IpAddr::V4(v4),
            None => IpAddr::V6((v6.to_bits() & !u128::from(u64::MAX)).into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn connections() -> Arc<Connections> {
        Connections::new(Arc::default())
    }

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    fn is_shed(member: &Member) -> bool {
        let pools = member.0.connections.pools.lock();
        let is_known = member.0.is_authenticated.load(Ordering::Relaxed);
        !is_known && !pools.unauthenticated.contains_key(&member.0.id)
    }

    #[test]
    fn one_address_ends_its_own_connections_first() {
        let all = connections();
        let other = all.admit(address(2));
        let many: Vec<Member> = (0..ADDRESS_LIMIT).map(|_| all.admit(address(1))).collect();
        assert!(!is_shed(&many[0]));
        let _one_more = all.admit(address(1));
        assert!(is_shed(&many[0]), "the oldest of the same address ends");
        assert!(!is_shed(&other) && !is_shed(&many[1]));
        drop(many);
        assert_eq!(all.pools.lock().addresses.get(&address(1)), Some(&1));
    }

    #[test]
    fn authenticated_connections_never_end_for_others() {
        let all = connections();
        let admin = all.admit(address(1));
        admin.0.authenticated(&User::admin());
        let busy = all.admit(address(1));
        let _request = busy.0.progress.begin();
        let idle = all.admit(address(1));
        let mut more = Vec::new();
        for number in 0..2 * UNAUTHENTICATED_LIMIT {
            more.push(all.admit(address(u8::try_from(number % 4).unwrap())));
            if number == UNAUTHENTICATED_LIMIT {
                assert!(is_shed(&idle) && !is_shed(&busy), "idle ones end first");
            }
        }
        assert!(!is_shed(&admin));
        assert!(all.pools.lock().unauthenticated.len() <= UNAUTHENTICATED_LIMIT);
        drop((more, busy, idle, admin));
        let pools = all.pools.lock();
        assert_eq!((pools.authenticated, pools.users.len()), (0, 0));
        assert_eq!((pools.unauthenticated.len(), pools.addresses.len()), (0, 0));
    }

    #[test]
    fn one_user_does_not_take_all_connections() {
        let all = connections();
        let user = User::new("jane", &[]);
        let mut many = Vec::new();
        for _ in 0..USER_LIMIT + 10 {
            let member = all.admit(address(1));
            member.0.authenticated(&user);
            many.push(member);
        }
        assert_eq!(all.pools.lock().authenticated, USER_LIMIT);
        assert_eq!(all.pools.lock().unauthenticated.len(), 10);
    }
}
