//! IP addresses and networks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address in a form that is not ambiguous, or why it is none.
pub(crate) fn parse_ip(text: &str) -> Result<IpAddr, String> {
    let ip: IpAddr = text.parse().map_err(|_| unparsable(text))?;
    match ip {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => Err(format!(
            "IPv4-mapped IPv6 address {} is not allowed",
            windlass_core::quote(text)
        )),
        _ => Ok(ip),
    }
}

fn unparsable(text: &str) -> String {
    let quoted = windlass_core::quote(text);
    let why = if text.contains('%') {
        return format!("IP address {quoted} with zone value is not allowed");
    } else if text.contains(':') {
        "each colon-separated field must have at least one digit"
    } else if text.contains('.') {
        "IPv4 field has value >255"
    } else {
        "unable to parse IP"
    };
    format!(
        "IP Address {quoted} parse error during conversion from string: ParseAddr({quoted}): {why}"
    )
}

/// A network: an address and how many of its bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    ip: IpAddr,
    bits: u8,
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let quoted = windlass_core::quote(text);
        let invalid = |why: &str| {
            format!(
                "network address parse error during conversion from string: netip.ParsePrefix({quoted}): {why}"
            )
        };
        let (address, bits) = text.rsplit_once('/').ok_or_else(|| invalid("no '/'"))?;
        let ip: IpAddr = address.parse().map_err(|_| invalid("unable to parse IP"))?;
        if let IpAddr::V6(v6) = ip
            && v6.to_ipv4_mapped().is_some()
        {
            return Err(format!(
                "IPv4-mapped IPv6 address {} is not allowed",
                windlass_core::quote(address)
            ));
        }
        let limit = if ip.is_ipv4() { 32 } else { 128 };
        let is_plain =
            bits == "0" || (!bits.starts_with('0') && bits.bytes().all(|c| c.is_ascii_digit()));
        let bits: u8 = bits
            .parse()
            .ok()
            .filter(|bits| is_plain && *bits <= limit)
            .ok_or_else(|| invalid("prefix length out of range"))?;
        Ok(Self { ip, bits })
    }
}

impl Cidr {
    pub(crate) fn ip(self) -> IpAddr {
        self.ip
    }

    pub(crate) fn prefix_length(self) -> i64 {
        i64::from(self.bits)
    }

    pub(crate) fn bytes_len(self) -> usize {
        usize::from(self.bits).div_ceil(8)
    }

    /// The network without the bits that do not count.
    pub(crate) fn masked(self) -> Self {
        let ip = match self.ip {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask))
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(self.bits))
                    .unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask))
            }
        };
        Self {
            ip,
            bits: self.bits,
        }
    }

    pub(crate) fn contains_ip(self, ip: IpAddr) -> bool {
        let other = Self {
            ip,
            bits: self.bits,
        };
        self.ip.is_ipv4() == ip.is_ipv4() && self.masked().ip == other.masked().ip
    }

    pub(crate) fn contains_cidr(self, other: Self) -> bool {
        self.bits <= other.bits && self.contains_ip(other.masked().ip)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.bits)
    }
}
