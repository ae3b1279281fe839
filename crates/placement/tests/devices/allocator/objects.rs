//! Devices, classes and claims to allocate, and a small language for selectors.

use std::{collections::HashSet, sync::Arc};

use windlass_core::{Doc, Quantity, doc};
use windlass_placement::allocator::{
    AllocateError, Compiler, Deadline, DeviceId, DeviceView, Inventory, Outcome, Plan, Selector,
    Selectors,
};

/// The driver of most devices.
pub(crate) const DRIVER: &str = "gpu.example.com";

/// Understands `true`, `false`, `fail`, `attr=value` for strings and `memory>=quantity`.
struct Words;

enum Word {
    Always(bool),
    Fail,
    Equal(String, String),
    AtLeast(String, Quantity),
}

impl Compiler for Words {
    fn compile(&self, expression: &str) -> Result<Arc<dyn Selector>, String> {
        let word = match expression {
            "true" => Word::Always(true),
            "false" => Word::Always(false),
            "fail" => Word::Fail,
            text => {
                if let Some((name, value)) = text.split_once(">=") {
                    Word::AtLeast(name.to_owned(), value.parse().map_err(|_| "no quantity")?)
                } else if let Some((name, value)) = text.split_once('=') {
                    Word::Equal(name.to_owned(), value.to_owned())
                } else {
                    return Err(format!("undeclared reference to '{text}'"));
                }
            }
        };
        Ok(Arc::new(word))
    }
}

impl Selector for Word {
    fn matches(&self, device: &DeviceView<'_>) -> Result<bool, String> {
        let attribute = |name: &str| {
            device
                .device
                .at(&format!("/attributes/{name}/string"))
                .clone()
        };
        Ok(match self {
            Self::Always(answer) => *answer,
            Self::Fail => return Err("no such key: absent".to_owned()),
            Self::Equal(name, value) => attribute(name) == value.as_str(),
            Self::AtLeast(name, least) => {
                let value = device.device.str_at(&format!("/capacity/{name}/value"));
                value.parse::<Quantity>().is_ok_and(|value| value >= *least)
            }
        })
    }
}

/// Everything that an allocation reads.
pub(crate) struct World {
    pub(crate) slices: Vec<Doc>,
    pub(crate) classes: Vec<Doc>,
    pub(crate) claims: Vec<Doc>,
    pub(crate) allocated: HashSet<DeviceId>,
    pub(crate) selectors: Selectors,
}

impl World {
    /// A world with the class `gpu` and without devices.
    pub(crate) fn new() -> Self {
        Self {
            slices: Vec::new(),
            classes: vec![class("gpu", &[])],
            claims: Vec::new(),
            allocated: HashSet::new(),
            selectors: Selectors::new(Words),
        }
    }

    /// Adds a pool of node `n1` with these devices.
    pub(crate) fn pool(mut self, pool: &str, devices: Vec<Doc>) -> Self {
        self.slices.push(slice(pool, devices));
        self
    }

    pub(crate) fn slice(mut self, slice: Doc) -> Self {
        self.slices.push(slice);
        self
    }

    pub(crate) fn class(mut self, class: Doc) -> Self {
        self.classes.push(class);
        self
    }

    pub(crate) fn claim(mut self, claim: Doc) -> Self {
        self.claims.push(claim);
        self
    }

    /// Somebody has this device of a pool.
    pub(crate) fn in_use(mut self, pool: &str, device: &str) -> Self {
        self.allocated.insert(DeviceId::new(DRIVER, pool, device));
        self
    }

    pub(crate) fn plan(&self) -> Result<Plan, AllocateError> {
        let class = |name: &str| {
            let mut classes = self.classes.iter();
            classes.find(|class| class.meta().name() == name).cloned()
        };
        Plan::new(&self.claims, &class, &self.selectors)
    }

    pub(crate) fn allocate(&self) -> Result<Outcome, AllocateError> {
        self.allocate_on(&node("n1"))
    }

    pub(crate) fn allocate_on(&self, node: &Doc) -> Result<Outcome, AllocateError> {
        let inventory = Inventory::of(&self.slices);
        self.allocate_from(&self.plan()?, &inventory, node, &Deadline::never())
    }

    pub(crate) fn allocate_from(
        &self,
        plan: &Plan,
        inventory: &Inventory,
        node: &Doc,
        deadline: &Deadline<'_>,
    ) -> Result<Outcome, AllocateError> {
        let in_use = |id: &DeviceId| self.allocated.contains(id);
        plan.allocate(inventory, &in_use, node, deadline)
    }

    /// `request:pool/device` of each result of each claim.
    pub(crate) fn results(&self) -> Vec<Vec<String>> {
        match self.allocate().unwrap() {
            Outcome::Fits { allocations, .. } => allocations.iter().map(results).collect(),
            Outcome::Refused => panic!("{}", self.explanation()),
        }
    }

    /// Why the claims cannot be met on `n1`.
    fn explanation(&self) -> String {
        let in_use = |id: &DeviceId| self.allocated.contains(id);
        let inventory = Inventory::of(&self.slices);
        let plan = self.plan().unwrap();
        let why = plan.explain(&inventory, &in_use, &node("n1"));
        why.unwrap().to_string()
    }

    /// The text of a refusal.
    pub(crate) fn refusal(&self) -> String {
        match self.allocate().unwrap() {
            Outcome::Refused => self.explanation(),
            Outcome::Fits { allocations, .. } => panic!("{allocations:?}"),
        }
    }

    /// The text of an error.
    pub(crate) fn error(&self) -> String {
        self.allocate().unwrap_err().to_string()
    }

    pub(crate) fn allocations(&self) -> Vec<Doc> {
        match self.allocate().unwrap() {
            Outcome::Fits { allocations, .. } => allocations,
            Outcome::Refused => panic!("{}", self.explanation()),
        }
    }
}

pub(crate) fn results(allocation: &Doc) -> Vec<String> {
    let results = allocation.at("/devices/results").items().iter();
    let text = |result: &Doc| {
        let part = |key: &str| result.str_at(&format!("/{key}")).to_owned();
        format!("{}:{}/{}", part("request"), part("pool"), part("device"))
    };
    results.map(text).collect()
}

pub(crate) fn node(name: &str) -> Doc {
    doc!({ "metadata": { "name": name, "labels": { "zone": "a" } } })
}

/// A complete pool of one slice on node `n1`.
pub(crate) fn slice(pool: &str, devices: Vec<Doc>) -> Doc {
    doc!({
        "metadata": { "name": (format!("slice-{pool}")) },
        "spec": {
            "driver": DRIVER, "nodeName": "n1",
            "pool": { "name": pool, "generation": 1, "resourceSliceCount": 1 },
            "devices": devices
        }
    })
}

pub(crate) fn device(name: &str) -> Doc {
    doc!({ "name": name })
}

pub(crate) fn devices(count: usize) -> Vec<Doc> {
    (0..count).map(|at| device(&format!("d{at:04}"))).collect()
}

/// A device with a string attribute.
pub(crate) fn device_with(name: &str, attribute: &str, value: &str) -> Doc {
    device_of(name, attribute, doc!({ "string": value }))
}

/// A device with an attribute of any type.
pub(crate) fn device_of(name: &str, attribute: &str, value: Doc) -> Doc {
    let attributes = windlass_core::Object::new(vec![(attribute.into(), value)]);
    doc!({ "name": name, "attributes": attributes })
}

pub(crate) fn device_with_memory(name: &str, memory: &str) -> Doc {
    doc!({ "name": name, "capacity": { "memory": { "value": memory } } })
}

pub(crate) fn class(name: &str, selectors: &[&str]) -> Doc {
    doc!({ "metadata": { "name": name }, "spec": { "selectors": (cel(selectors)) } })
}

fn cel(selectors: &[&str]) -> Vec<Doc> {
    let selectors = selectors.iter();
    selectors
        .map(|text| doc!({ "cel": { "expression": (*text) } }))
        .collect()
}

pub(crate) fn claim(name: &str, requests: Vec<Doc>) -> Doc {
    doc!({
        "metadata": { "namespace": "ns", "name": name },
        "spec": { "devices": { "requests": requests } }
    })
}

/// A claim with constraints.
pub(crate) fn constrained(name: &str, requests: Vec<Doc>, constraints: Vec<Doc>) -> Doc {
    claim(name, requests)
        .with("/spec/devices/constraints", constraints)
        .unwrap()
}

/// What an `exactly` or a sub-request says.
pub(crate) fn wants(count: u64, selectors: &[&str]) -> Doc {
    doc!({
        "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count,
        "selectors": (cel(selectors))
    })
}

pub(crate) fn wants_all(selectors: &[&str]) -> Doc {
    doc!({ "deviceClassName": "gpu", "allocationMode": "All", "selectors": (cel(selectors)) })
}

pub(crate) fn request(name: &str, exactly: Doc) -> Doc {
    doc!({ "name": name, "exactly": exactly })
}

pub(crate) fn exact(name: &str, count: u64, selectors: &[&str]) -> Doc {
    request(name, wants(count, selectors))
}

pub(crate) fn admin(name: &str, exactly: &Doc) -> Doc {
    request(name, exactly.with("/adminAccess", true).unwrap())
}

/// A request that takes the first of its sub-requests that can be met.
pub(crate) fn first_of(name: &str, subs: Vec<(&str, Doc)>) -> Doc {
    let subs: Vec<Doc> = subs
        .into_iter()
        .map(|(name, wants)| wants.with("/name", name).unwrap())
        .collect();
    doc!({ "name": name, "firstAvailable": subs })
}

pub(crate) fn matching(attribute: &str, requests: &[&str]) -> Doc {
    constraint("matchAttribute", attribute, requests)
}

pub(crate) fn distinct(attribute: &str, requests: &[&str]) -> Doc {
    constraint("distinctAttribute", attribute, requests)
}

fn constraint(rule: &str, attribute: &str, requests: &[&str]) -> Doc {
    let requests: Vec<Doc> = requests.iter().map(|name| Doc::from(*name)).collect();
    doc!({ rule: attribute, "requests": requests })
}
