//! From slices to the pools of a node.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use windlass_core::{Doc, Str};

use super::{
    device::{Place, Slice},
    error::AllocateError,
    node_selector,
};

/// A pool, as far as it concerns one node.
#[derive(Clone, Debug)]
pub struct Pool {
    /// The driver.
    pub driver: Str,
    /// The name of the pool.
    pub name: Str,
    /// Whether its devices can be used.
    pub state: PoolState,
    /// Its slices of the newest generation that concern the node, by name.
    pub(super) slices: Vec<Arc<Slice>>,
}

/// Whether the devices of a pool can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolState {
    /// All slices are there.
    Complete,
    /// Slices are missing: the driver is about to publish them.
    Incomplete,
    /// The slices contradict each other.
    Invalid(String),
}

type AllPools = HashMap<(Str, Str), BTreeMap<Str, Arc<Slice>>>;

/// The pools of a node, sorted by driver and name.
pub(super) fn gather<'a>(
    slices: impl Iterator<Item = &'a Arc<Slice>>,
    node: &Doc,
    all: &AllPools,
) -> Result<Vec<Pool>, AllocateError> {
    let mut by_pool: BTreeMap<(Str, Str), Vec<Arc<Slice>>> = BTreeMap::new();
    for slice in slices {
        if !concerns(slice, node)? {
            continue;
        }
        let kept = by_pool.entry(slice.pool_key()).or_default();
        match kept.first().map(|first| first.generation) {
            Some(newest) if newest > slice.generation => continue,
            Some(newest) if newest < slice.generation => kept.clear(),
            _ => {}
        }
        kept.push(slice.clone());
    }
    let pools = by_pool.into_iter();
    Ok(pools
        .filter_map(|(key, slices)| pool(&key, slices, all))
        .collect())
}

fn concerns(slice: &Slice, node: &Doc) -> Result<bool, AllocateError> {
    match &slice.place {
        Place::Node(name) => Ok(*name == *node.meta().name()),
        Place::Everywhere => Ok(true),
        Place::Unknown => Ok(false),
        Place::Selected(selector) => node_selector::matches(selector, node).map_err(|error| {
            AllocateError::Invalid(format!(
                "node selector in ResourceSlice {}: {error}",
                slice.name
            ))
        }),
    }
}

/// A pool of the slices that concern a node; `None` if a newer generation of it has begun
/// elsewhere.
fn pool(key: &(Str, Str), mut slices: Vec<Arc<Slice>>, all: &AllPools) -> Option<Pool> {
    slices.sort_by(|a, b| a.name.cmp(&b.name));
    let (generation, count) = slices
        .first()
        .map(|first| (first.generation, first.count))?;
    let mut state = PoolState::Complete;
    if usize::try_from(count) != Ok(slices.len()) {
        let known = all.get(key).into_iter().flat_map(BTreeMap::values);
        if known.clone().any(|other| other.generation > generation) {
            return None;
        }
        let present = known.filter(|other| other.generation == generation).count();
        if usize::try_from(count) != Ok(present) {
            state = PoolState::Incomplete;
        }
    }
    if state == PoolState::Complete
        && let Some(device) = duplicate(&slices)
    {
        state = PoolState::Invalid(format!("duplicate device name {device}"));
    }
    let (driver, name) = key.clone();
    Some(Pool {
        driver,
        name,
        state,
        slices,
    })
}

fn duplicate(slices: &[Arc<Slice>]) -> Option<&Str> {
    let mut seen = HashSet::new();
    let mut names = slices
        .iter()
        .flat_map(|slice| &slice.devices)
        .map(|device| &device.id.device);
    names.find(|name| !seen.insert(*name))
}
