//! Devices, and the slices that publish them.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use windlass_core::{Doc, Str};

use super::selectors::Match;

/// How many expressions a slice remembers the answers of; the oldest goes.
const ANSWERS_LIMIT: usize = 32;

/// The name of a device: the slice that publishes it may change, this does not.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId {
    /// The driver.
    pub driver: Str,
    /// The pool of that driver.
    pub pool: Str,
    /// The device in that pool.
    pub device: Str,
}

impl DeviceId {
    /// The device of this name.
    #[must_use]
    pub fn new(driver: &str, pool: &str, device: &str) -> Self {
        Self {
            driver: Str::new(driver),
            pool: Str::new(pool),
            device: Str::new(device),
        }
    }

    /// The device that an allocation result names.
    #[must_use]
    pub fn of_result(result: &Doc) -> Self {
        let text = |pointer| result.str_at(pointer);
        Self::new(text("/driver"), text("/pool"), text("/device"))
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.driver, self.pool, self.device)
    }
}

impl fmt::Debug for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A device as its driver describes it.
#[derive(Debug)]
pub struct Device {
    /// Its name.
    pub id: DeviceId,
    /// Its entry in the slice.
    pub doc: Doc,
    /// Whether it needs a feature that is absent here.
    pub(super) is_unsupported: bool,
}

/// A slice: some of the devices of a pool.
pub struct Slice {
    /// The name of the object. Slices of a pool are used in this order.
    pub(super) name: Str,
    pub(super) driver: Str,
    pub(super) pool: Str,
    pub(super) generation: i64,
    /// How many slices the pool has in this generation.
    pub(super) count: i64,
    pub(super) place: Place,
    pub(super) devices: Vec<Device>,
    /// The answers of expressions about the devices, by the number of the expression. They hold
    /// as long as the slice: a changed slice is another one.
    answers: Mutex<Vec<(u64, Arc<[Match]>)>>,
}

/// Where the devices of a slice can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On one node.
    Node(Str),
    /// On the nodes that a selector matches.
    Selected(Doc),
    /// On every node.
    Everywhere,
    /// It needs a feature that is absent here, or one that did not exist yet.
    Unknown,
}

impl Slice {
    /// The slice that an object describes.
    #[must_use]
    pub fn new(object: &Doc) -> Self {
        let spec = object.at("/spec");
        let (driver, pool) = (spec.str_at("/driver"), spec.str_at("/pool/name"));
        let device = |doc: &Doc| Device {
            id: DeviceId::new(driver, pool, doc.str_at("/name")),
            is_unsupported: !doc.at("/consumesCounters").items().is_empty()
                || !doc.at("/bindingConditions").items().is_empty(),
            doc: doc.clone(),
        };
        let number = |pointer| spec.at(pointer).as_i64().unwrap_or(0);
        Self {
            name: Str::new(object.meta().name()),
            driver: Str::new(driver),
            pool: Str::new(pool),
            generation: number("/pool/generation"),
            count: number("/pool/resourceSliceCount"),
            place: Place::of(spec),
            devices: spec.at("/devices").items().iter().map(device).collect(),
            answers: Mutex::default(),
        }
    }

    pub(super) fn pool_key(&self) -> (Str, Str) {
        (self.driver.clone(), self.pool.clone())
    }

    /// What an expression says about each device; `None` if one of them was not asked.
    pub(super) fn answers(
        &self,
        expression: u64,
        ask: impl Fn(&Device) -> Option<Match>,
    ) -> Option<Arc<[Match]>> {
        let mut answers = self.answers.lock();
        if let Some((_, known)) = answers.iter().find(|(id, _)| *id == expression) {
            return Some(known.clone());
        }
        let new: Arc<[Match]> = self.devices.iter().map(ask).collect::<Option<_>>()?;
        if answers.len() >= ANSWERS_LIMIT {
            answers.remove(0);
        }
        answers.push((expression, new.clone()));
        Some(new)
    }
}

impl Place {
    fn of(spec: &Doc) -> Self {
        let is_set = |key: &str| spec.get(key).and_then(Doc::as_bool) == Some(true);
        if is_set("perDeviceNodeSelection") || !spec.at("/sharedCounters").items().is_empty() {
            return Self::Unknown;
        }
        match spec.str_at("/nodeName") {
            "" => {}
            node => return Self::Node(Str::new(node)),
        }
        match spec.get("nodeSelector") {
            Some(selector) if !selector.is_null() => Self::Selected(selector.clone()),
            _ if is_set("allNodes") => Self::Everywhere,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slice")
            .field("name", &self.name)
            .field("pool", &self.pool)
            .field("generation", &self.generation)
            .field("devices", &self.devices.len())
            .finish_non_exhaustive()
    }
}
