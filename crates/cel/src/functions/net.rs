//! Addresses, networks and URLs.

use std::net::IpAddr;
use std::sync::Arc;

use super::{CostRule, Outcome, Row, no_overload};
use crate::error::EvalError;
use crate::value::{Cidr, Map, Url, Value, parse_ip};

pub(super) const ROWS: &[Row] = &[
    Row("ip", CostRule::Read(1.0), ip, &["(string)ip", "cidr.()ip"]),
    Row(
        "isIP",
        CostRule::Read(1.0),
        |args| on_text(args, |text| parse_ip(text).is_ok()),
        &["(string)bool"],
    ),
    Row(
        "ip.isCanonical",
        CostRule::Read(2.0),
        is_canonical,
        &["(string)bool"],
    ),
    Row("family", CostRule::Unit, family, &["ip.()int"]),
    Row(
        "isUnspecified",
        CostRule::Unit,
        |args| on_ip(args, |ip| ip.is_unspecified()),
        &["ip.()bool"],
    ),
    Row(
        "isLoopback",
        CostRule::Unit,
        |args| on_ip(args, |ip| ip.is_loopback()),
        &["ip.()bool"],
    ),
    Row(
        "isLinkLocalMulticast",
        CostRule::Unit,
        |args| on_ip(args, is_link_local_multicast),
        &["ip.()bool"],
    ),
    Row(
        "isLinkLocalUnicast",
        CostRule::Unit,
        |args| on_ip(args, is_link_local_unicast),
        &["ip.()bool"],
    ),
    Row(
        "isGlobalUnicast",
        CostRule::Unit,
        |args| on_ip(args, is_global_unicast),
        &["ip.()bool"],
    ),
    Row("cidr", CostRule::Read(1.0), cidr, &["(string)cidr"]),
    Row(
        "isCIDR",
        CostRule::Read(1.0),
        |args| on_text(args, |text| text.parse::<Cidr>().is_ok()),
        &["(string)bool"],
    ),
    Row(
        "containsIP",
        CostRule::Within { is_network: false },
        contains_ip,
        &["cidr.(ip)bool", "cidr.(string)bool"],
    ),
    Row(
        "containsCIDR",
        CostRule::Within { is_network: true },
        contains_cidr,
        &["cidr.(cidr)bool", "cidr.(string)bool"],
    ),
    Row("masked", CostRule::Unit, masked, &["cidr.()cidr"]),
    Row(
        "prefixLength",
        CostRule::Unit,
        prefix_length,
        &["cidr.()int"],
    ),
    Row("url", CostRule::Scan(1.0), url, &["(string)url"]),
    Row(
        "isURL",
        CostRule::Read(1.0),
        |args| on_text(args, |text| text.parse::<Url>().is_ok()),
        &["(string)bool"],
    ),
    Row(
        "getScheme",
        CostRule::Unit,
        |args| on_url(args, |url| url.scheme().to_owned()),
        &["url.()string"],
    ),
    Row(
        "getHost",
        CostRule::Unit,
        |args| on_url(args, |url| url.host().to_owned()),
        &["url.()string"],
    ),
    Row(
        "getHostname",
        CostRule::Unit,
        |args| on_url(args, |url| url.hostname().to_owned()),
        &["url.()string"],
    ),
    Row(
        "getPort",
        CostRule::Unit,
        |args| on_url(args, |url| url.port().to_owned()),
        &["url.()string"],
    ),
    Row(
        "getEscapedPath",
        CostRule::Unit,
        |args| on_url(args, Url::escaped_path),
        &["url.()string"],
    ),
    Row(
        "getQuery",
        CostRule::Unit,
        query,
        &["url.()map<string,list<string>>"],
    ),
];

fn on_text(args: &[Value], holds: fn(&str) -> bool) -> Outcome {
    match args {
        [Value::String(text)] => Ok(Value::Bool(holds(text))),
        _ => no_overload(),
    }
}

fn on_ip(args: &[Value], holds: fn(&IpAddr) -> bool) -> Outcome {
    match args {
        [Value::Ip(ip)] => Ok(Value::Bool(holds(ip))),
        _ => no_overload(),
    }
}

fn on_url(args: &[Value], part: fn(&Url) -> String) -> Outcome {
    match args {
        [Value::Url(url)] => Ok(Value::from(part(url))),
        _ => no_overload(),
    }
}

fn ip(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::String(text)] => parse_ip(text).map(Value::Ip).map_err(EvalError::failed),
        [Value::Cidr(cidr)] => Ok(Value::Ip(cidr.ip())),
        _ => no_overload(),
    }
}

fn is_canonical(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::String(text)] => {
            let ip = parse_ip(text).map_err(EvalError::failed)?;
            Ok(Value::Bool(ip.to_string() == **text))
        }
        _ => no_overload(),
    }
}

fn family(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Ip(ip)] => Ok(Value::Int(if ip.is_ipv4() { 4 } else { 6 })),
        _ => no_overload(),
    }
}

fn is_link_local_multicast(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn is_global_unicast(ip: &IpAddr) -> bool {
    let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    !is_broadcast
        && !ip.is_unspecified()
        && !ip.is_loopback()
        && !ip.is_multicast()
        && !is_link_local_unicast(ip)
}

fn cidr(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::String(text)] => text.parse().map(Value::Cidr).map_err(EvalError::Failed),
        _ => no_overload(),
    }
}

fn contains_ip(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Cidr(cidr), Value::Ip(ip)] => Ok(Value::Bool(cidr.contains_ip(*ip))),
        [Value::Cidr(cidr), Value::String(text)] => {
            let ip = parse_ip(text).map_err(EvalError::failed)?;
            Ok(Value::Bool(cidr.contains_ip(ip)))
        }
        _ => no_overload(),
    }
}

fn contains_cidr(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Cidr(cidr), Value::Cidr(other)] => Ok(Value::Bool(cidr.contains_cidr(*other))),
        [Value::Cidr(cidr), Value::String(text)] => {
            let other = text.parse().map_err(EvalError::Failed)?;
            Ok(Value::Bool(cidr.contains_cidr(other)))
        }
        _ => no_overload(),
    }
}

fn masked(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Cidr(cidr)] => Ok(Value::Cidr(cidr.masked())),
        _ => no_overload(),
    }
}

fn prefix_length(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Cidr(cidr)] => Ok(Value::Int(cidr.prefix_length())),
        _ => no_overload(),
    }
}

fn url(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::String(text)] => text
            .parse()
            .map(|url| Value::Url(Arc::new(url)))
            .map_err(EvalError::Failed),
        _ => no_overload(),
    }
}

fn query(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Url(url)] => {
            let parameters = url.query().into_iter().map(|(key, values)| {
                (
                    key,
                    Value::list(values.into_iter().map(Value::from).collect()),
                )
            });
            Ok(Value::Map(Map::from_entries(parameters)))
        }
        _ => no_overload(),
    }
}
