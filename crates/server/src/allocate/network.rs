//! The network that services get their addresses from.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use windlass_core::Env;

/// Low addresses are for those who ask for one: so many at least and at most, as upstream has it.
const STATIC_ADDRESSES: (u32, u32) = (16, 256);
/// The part of a small network that is low, as its divisor.
const STATIC_SHARE: u32 = 16;
/// The fewest bits of a prefix: no cluster needs more addresses.
const PREFIX_MIN: u32 = 8;
/// The most bits of a prefix: a network needs eight addresses, upstream says.
const PREFIX_MAX: u32 = 29;

/// A network of version 4 for the addresses of services, such as `10.96.0.0/12`. There is nothing
/// behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceNetwork {
    base: Ipv4Addr,
    bits: u32,
}

/// A text that is not a network for services.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceNetworkError {
    /// It is not `ADDRESS/BITS` of version 4.
    #[error("{0:?} is not an IPv4 network such as 10.96.0.0/12")]
    Text(String),
    /// It is too large or too small.
    #[error("the prefix of a service network has {PREFIX_MIN} to {PREFIX_MAX} bits, not {0}")]
    Prefix(u32),
}

impl Default for ServiceNetwork {
    fn default() -> Self {
        Self {
            base: Ipv4Addr::new(10, 96, 0, 0),
            bits: 12,
        }
    }
}

impl FromStr for ServiceNetwork {
    type Err = ServiceNetworkError;

    fn from_str(text: &str) -> Result<Self, ServiceNetworkError> {
        let wrong = || ServiceNetworkError::Text(text.to_owned());
        let (address, bits) = text.trim().split_once('/').ok_or_else(wrong)?;
        let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
        let bits: u32 = bits.parse().map_err(|_| wrong())?;
        if !(PREFIX_MIN..=PREFIX_MAX).contains(&bits) {
            return Err(ServiceNetworkError::Prefix(bits));
        }
        let mask = u32::MAX << (u32::BITS - bits);
        Ok(Self {
            base: Ipv4Addr::from_bits(address.to_bits() & mask),
            bits,
        })
    }
}

impl fmt::Display for ServiceNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

impl ServiceNetwork {
    fn size(self) -> u32 {
        1 << (u32::BITS - self.bits)
    }

    /// Returns true if a service may have an address. The first address names the network, the last
    /// one everybody in it.
    pub(crate) fn contains(self, address: Ipv4Addr) -> bool {
        let offset = address.to_bits().checked_sub(self.base.to_bits());
        offset.is_some_and(|offset| offset > 0 && offset < self.size() - 1)
    }

    /// The first address, which the service of the API server has.
    pub(crate) fn first(self) -> Ipv4Addr {
        self.at(1)
    }

    /// The bits of its prefix: the fewer, the more addresses.
    pub(super) fn prefix_bits(self) -> u32 {
        self.bits
    }

    fn at(self, offset: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base.to_bits() + offset)
    }

    /// All addresses in the order in which they are tried: the upper ones from a random one on, then
    /// the low ones.
    pub(super) fn candidates(self, env: &Env) -> impl Iterator<Item = Ipv4Addr> + use<> {
        let low = self.static_addresses();
        let count = self.size() - 1 - low;
        let start = env.random_below(u64::from(count)) as u32;
        let upper = (0..count).map(move |step| low + (start + step) % count);
        upper.chain(1..low).map(move |offset| self.at(offset))
    }

    /// The number of addresses at the start that are for those who ask for one, as upstream's
    /// `calculateRangeOffset` has it: none in a network that is small itself.
    fn static_addresses(self) -> u32 {
        let (least, most) = STATIC_ADDRESSES;
        match self.size() {
            size if size <= least => 1,
            size => (size / STATIC_SHARE).clamp(least, most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_read_and_its_addresses_are_tried_once_each() {
        let network: ServiceNetwork = "10.0.0.77/28".parse().unwrap();
        assert_eq!(network.to_string(), "10.0.0.64/28");
        let mut all: Vec<u32> = network
            .candidates(&Env::seeded(1))
            .map(Ipv4Addr::to_bits)
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 14);
        assert!(
            all.iter()
                .all(|bits| network.contains(Ipv4Addr::from_bits(*bits)))
        );
        for text in ["10.0.0.0", "::/112", "x/8", "10.0.0.0/7", "10.0.0.0/30"] {
            assert!(text.parse::<ServiceNetwork>().is_err(), "{text}");
        }
    }
}
