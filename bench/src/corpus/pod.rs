//! What differs from pod to pod: names, ids, places and times, all derived from the pod's number.

use std::io::Write;

/// Seconds between two pods. It is longer than a pod takes to become ready, so that no two pods
/// share a timestamp: sharing them would flatter whoever stores equal strings once.
const SECONDS_PER_POD: usize = 11;

/// Timestamps stay within the first 28 days of a month, which spares us a calendar.
const SECONDS_LIMIT: usize = 28 * 24 * 60 * 60;

/// The alphabet of generated names, the one Kubernetes uses.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// 27 to the power of 5: how many suffixes of five characters there are.
const SUFFIXES: usize = 14_348_907;

/// A hole in a template that every pod fills differently.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    Name,
    Uid,
    Revision,
    TokenVolume,
    Node,
    HostIp,
    PodIp,
    ContainerId(u64),
    /// So many seconds after the pod was created.
    Time(usize),
}

impl Slot {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "name" => Self::Name,
            "uid" => Self::Uid,
            "revision" => Self::Revision,
            "token-volume" => Self::TokenVolume,
            "node" => Self::Node,
            "host-ip" => Self::HostIp,
            "pod-ip" => Self::PodIp,
            "container-app" => Self::ContainerId(1),
            "container-proxy" => Self::ContainerId(2),
            "time-created" => Self::Time(0),
            "time-start" => Self::Time(1),
            "time-sandbox" => Self::Time(2),
            "time-app" => Self::Time(3),
            "time-proxy" => Self::Time(4),
            "time-ready" => Self::Time(9),
            _ => return None,
        })
    }
}

/// Who a pod is.
#[derive(Debug)]
pub(super) struct Identity<'a> {
    pub(super) index: usize,
    /// The number that its token volume is named after.
    pub(super) token: usize,
    /// The name of the pod's ReplicaSet.
    pub(super) owner: &'a str,
}

impl Identity<'_> {
    pub(super) fn write(&self, slot: Slot, out: &mut Vec<u8>) {
        let written = match slot {
            Slot::Name => write!(out, "{}-{}", self.owner, suffix(self.index, 7_654_321)),
            Slot::Uid => write!(out, "{}", uid(1, self.index)),
            Slot::Revision => write!(out, "{}", 1_000_000 + self.index),
            Slot::TokenVolume => {
                write!(out, "kube-api-access-{}", suffix(self.token, 5_432_101))
            }
            Slot::Node => write!(out, "node-{:02}.cluster.example", self.node()),
            Slot::HostIp => write!(out, "192.168.10.{}", self.node() + 1),
            Slot::PodIp => {
                let [_, b, c, d] = u32::try_from(self.index).unwrap_or(u32::MAX).to_be_bytes();
                write!(out, "10.{}.{c}.{d}", 64 | (b & 63))
            }
            Slot::ContainerId(container) => {
                let seed = mix(self.index as u64) ^ container;
                write!(out, "{}", hex64(seed))
            }
            Slot::Time(offset) => {
                write!(out, "{}", time(self.index * SECONDS_PER_POD + offset))
            }
        };
        written.expect("invariant: writing to memory does not fail");
    }

    fn node(&self) -> u64 {
        mix(self.index as u64) % super::NODES as u64
    }
}

/// A UUID of version 4, a function of its two numbers.
pub(super) fn uid(kind: u64, index: usize) -> String {
    let high = mix((kind << 56) ^ index as u64);
    let low = mix(high);
    let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xfff);
    let (d, e) = (0x8000 | ((low >> 48) & 0x3fff), low & 0xffff_ffff_ffff);
    format!("{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}")
}

/// 64 hexadecimal digits, as in a SHA-256 digest.
pub(super) fn hex64(seed: u64) -> String {
    let words = [1, 2, 3, 4].map(|word| mix(seed.wrapping_mul(4).wrapping_add(word)));
    let [a, b, c, d] = words;
    format!("{a:016x}{b:016x}{c:016x}{d:016x}")
}

/// Five characters, different for all numbers below [`SUFFIXES`] because `factor` has no divisor
/// in common with it.
pub(super) fn suffix(index: usize, factor: usize) -> String {
    debug_assert!(!factor.is_multiple_of(3), "the suffixes would repeat");
    let mut number = (index % SUFFIXES * factor) % SUFFIXES;
    let mut text = String::with_capacity(5);
    for _ in 0..5 {
        text.push(char::from(ALPHABET[number % ALPHABET.len()]));
        number /= ALPHABET.len();
    }
    text
}

fn time(seconds: usize) -> String {
    let seconds = seconds % SECONDS_LIMIT;
    let (day, hour) = (seconds / 86_400 + 1, seconds / 3_600 % 24);
    let (minute, second) = (seconds / 60 % 60, seconds % 60);
    format!("2026-05-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The finalizer of SplitMix64: spreads small numbers over all 64 bits, without repeats.
pub(super) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
