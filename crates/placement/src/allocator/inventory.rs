//! Everything that drivers publish, found by node and by pool.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;
use windlass_core::{Doc, Str};

use super::{
    device::{Place, Slice},
    error::AllocateError,
    pools::{self, Pool},
};

/// The labels of a node, and its pools.
type PoolsOf = (Doc, Arc<[Pool]>);

/// All slices. A change costs as much as the change is large.
#[derive(Debug, Default)]
pub struct Inventory {
    by_name: BTreeMap<Str, Arc<Slice>>,
    /// The slices of each pool, by name.
    by_pool: HashMap<(Str, Str), BTreeMap<Str, Arc<Slice>>>,
    /// The slices of one node each.
    by_node: HashMap<Str, BTreeMap<Str, Arc<Slice>>>,
    /// The slices that are not of one node.
    elsewhere: BTreeMap<Str, Arc<Slice>>,
    /// The pools of nodes, as they were last put together, with the node they are for. An entry
    /// goes with every change that concerns it.
    pools: Mutex<HashMap<Str, PoolsOf>>,
}

impl Inventory {
    /// An inventory of the given slices.
    #[must_use]
    pub fn of<'a>(slices: impl IntoIterator<Item = &'a Doc>) -> Self {
        let mut inventory = Self::default();
        for slice in slices {
            inventory.insert(slice);
        }
        inventory
    }

    /// Adds a slice, or replaces the one of its name.
    pub fn insert(&mut self, object: &Doc) {
        let slice = Arc::new(Slice::new(object));
        self.remove(&slice.name);
        let name = slice.name.clone();
        let pool = self.by_pool.entry(slice.pool_key()).or_default();
        pool.insert(name.clone(), slice.clone());
        let place = match &slice.place {
            Place::Node(node) => self.by_node.entry(node.clone()).or_default(),
            _ => &mut self.elsewhere,
        };
        place.insert(name.clone(), slice.clone());
        self.by_name.insert(name, slice.clone());
        self.forget(&slice);
    }

    /// Removes the slice of this name.
    pub fn remove(&mut self, name: &str) {
        let Some(slice) = self.by_name.remove(name) else {
            return;
        };
        self.forget(&slice);
        let key = slice.pool_key();
        if let Some(pool) = self.by_pool.get_mut(&key) {
            pool.remove(name);
            if pool.is_empty() {
                self.by_pool.remove(&key);
            }
        }
        match &slice.place {
            Place::Node(node) => {
                if let Some(slices) = self.by_node.get_mut(node) {
                    slices.remove(name);
                    if slices.is_empty() {
                        self.by_node.remove(node);
                    }
                }
            }
            _ => drop(self.elsewhere.remove(name)),
        }
    }

    /// Forgets the pools of the nodes that a change of a slice concerns: those of its pool, or all
    /// if the slice is not of one node.
    fn forget(&self, slice: &Slice) {
        let mut pools = self.pools.lock();
        let of_pool = self.by_pool.get(&slice.pool_key());
        let mut of_pool = of_pool.into_iter().flat_map(BTreeMap::values);
        let is_wide = |slice: &Slice| !matches!(slice.place, Place::Node(_));
        if is_wide(slice) || of_pool.clone().any(|other| is_wide(other)) {
            pools.clear();
            return;
        }
        if let Place::Node(node) = &slice.place {
            pools.remove(node);
        }
        of_pool.all(|other| {
            if let Place::Node(node) = &other.place {
                pools.remove(node);
            }
            true
        });
    }

    /// Forgets what is remembered of a node, when that is gone.
    pub fn forget_node(&self, name: &str) {
        self.pools.lock().remove(name);
    }

    /// How many slices there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is no slice.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The pools that concern a node, in the order in which they are used.
    ///
    /// # Errors
    /// When the selector of a slice cannot be understood.
    pub fn pools_of(&self, node: &Doc) -> Result<Arc<[Pool]>, AllocateError> {
        let name = node.meta().name();
        // A node changes with every heartbeat; only its labels can change its pools.
        let labels = node.at("/metadata/labels");
        if let Some((of, known)) = self.pools.lock().get(name)
            && of == labels
        {
            return Ok(known.clone());
        }
        let own = self.by_node.get(name).into_iter();
        let own = own.flat_map(BTreeMap::values);
        let gathered = pools::gather(own.chain(self.elsewhere.values()), node, &self.by_pool)?;
        let gathered: Arc<[Pool]> = gathered.into();
        let remembered = (labels.clone(), gathered.clone());
        self.pools.lock().insert(Str::new(name), remembered);
        Ok(gathered)
    }
}
