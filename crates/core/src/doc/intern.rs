//! Hash-consing: equal nodes are one allocation, freed with their last user.
//!
//! A node is a thin reference-counted slice with a small header. Every live node stands in
//! exactly one table, found by its hash; a table is split into shards with a lock each, so that
//! threads that parse different things rarely meet.
//!
//! The table itself holds a reference to each node. `Header::handles` therefore counts the users
//! *outside* the table, and the user that takes it to zero removes the node. Between reaching
//! zero and taking the lock another thread may have found the node again through the table; the
//! count is looked at once more under the lock, and a revived node stays.

use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use parking_lot::Mutex;
use triomphe::ThinArc;

/// Shards per table. A thread that reads a large body spends much of its time inside of shards, and
/// may lose its processor there for milliseconds. Among so many shards a small document, of about a
/// hundred nodes, rarely needs the one that is held.
const SHARDS: usize = 4096;

/// A shard with fewer slots than this is never shrunk.
const SHRINK_FLOOR: usize = 16;

/// The seed of all node hashes. It differs from run to run so that nobody can prepare colliding
/// documents; no observable order depends on it.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// An odd number without pattern, the golden ratio in fixed point.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The most users that one node may have. Half of what the counter holds, so that it cannot wrap
/// before the check that follows an increment.
const HANDLES_LIMIT: u32 = u32::MAX / 2;

/// Hashes text for the string table and for look-ups by text.
#[inline]
pub(super) fn hash_text(text: &str) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = SEED.build_hasher();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// Folds one more word into a running hash. The words are seeded hashes or small scalars, so a
/// folded multiplication is mixing enough.
#[inline]
pub(super) fn mix(state: u64, word: u64) -> u64 {
    let product = u128::from(state ^ word.rotate_left(23)) * u128::from(ODD);
    (product as u64) ^ ((product >> 64) as u64)
}

/// The half of a hash that a node keeps. A collision costs one comparison more, nothing else.
#[inline]
fn shorten(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

/// Spreads the half that a node keeps over the word that tables want.
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(ODD)
}

/// One sort of node: its header beside the items, and its table.
pub(super) trait Sort: Sized + 'static {
    /// The part of the header besides the count and the hash.
    type Extra: Send + Sync + PartialEq;
    /// The items of the slice.
    type Item: Send + Sync + PartialEq;
    /// The bytes that the extra holds outside of the node.
    fn extra_bytes(_: &Self::Extra) -> usize {
        0
    }
    /// The one table of this sort in the process.
    fn table() -> &'static Table<Self>;
}

/// The header of a node, in front of its items.
pub(super) struct Header<S: Sort> {
    /// Users outside the table. Written by every clone and drop of a [`Node`].
    handles: AtomicU32,
    /// Half the hash of the content, needed again to find the node in its table.
    hash: u32,
    /// The extra of this sort of node.
    extra: S::Extra,
}

type Cell<S> = ThinArc<Header<S>, <S as Sort>::Item>;

/// A user's handle on an interned node. Equality is identity.
pub(super) struct Node<S: Sort>(Cell<S>);

impl<S: Sort> Node<S> {
    /// The node with this content: the one that is alive, or a new one.
    ///
    /// `is_same` tells whether a node with the same hash has the content; `content` yields it if
    /// there is none.
    pub(super) fn intern<I>(
        hash: u64,
        is_same: impl Fn(&S::Extra, &[S::Item]) -> bool,
        content: impl FnOnce() -> (S::Extra, I),
    ) -> Self
    where
        I: Iterator<Item = S::Item> + ExactSizeIterator,
    {
        Self::find(hash, is_same).unwrap_or_else(|vacancy| {
            let (extra, items) = content();
            vacancy.fill(extra, items)
        })
    }

    /// The node with this content if it is alive, else a vacancy for it.
    pub(super) fn find(
        hash: u64,
        is_same: impl Fn(&S::Extra, &[S::Item]) -> bool,
    ) -> Result<Self, Vacancy> {
        let hash = shorten(hash);
        let shard = S::table().shard(hash).lock();
        let found = shard.find(hash, is_same).map(Self::another);
        found.ok_or(Vacancy { hash })
    }

    /// One more user of a node.
    #[inline]
    fn another(cell: &Cell<S>) -> Self {
        let users = cell.header.header.handles.fetch_add(1, Ordering::Relaxed);
        assert!(
            users < HANDLES_LIMIT,
            "a node with more than {HANDLES_LIMIT} users"
        );
        Self(cell.clone())
    }

    #[inline]
    pub(super) fn items(&self) -> &[S::Item] {
        &self.0.slice
    }

    #[inline]
    pub(super) fn extra(&self) -> &S::Extra {
        &self.0.header.header.extra
    }

    #[inline]
    pub(super) fn hash(&self) -> u64 {
        self.0.header.header.hash.into()
    }

    /// The address of the node: equal for equal content, as long as both are alive.
    #[inline]
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(&self.0.header).addr()
    }

    /// Returns true if the node has another user at this moment.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.0.header.header.handles.load(Ordering::Relaxed) > 1
    }

    /// The bytes this node occupies, without its children.
    pub(super) fn bytes(&self) -> usize {
        bytes_of::<S>(&self.0)
    }
}

/// The absence of a node. The node is made before its shard is locked, because the content of a
/// large one takes milliseconds to copy; another thread may add an equal one meanwhile.
pub(super) struct Vacancy {
    hash: u32,
}

impl Vacancy {
    pub(super) fn fill<S: Sort, I>(self, extra: S::Extra, items: I) -> Node<S>
    where
        I: Iterator<Item = S::Item> + ExactSizeIterator,
    {
        let header = self.header::<S>(extra);
        keep(Cell::<S>::from_header_and_iter(header, items))
    }

    /// Fills it with a copy.
    pub(super) fn copy<S: Sort>(self, extra: S::Extra, items: &[S::Item]) -> Node<S>
    where
        S::Item: Copy,
    {
        let header = self.header::<S>(extra);
        keep(Cell::<S>::from_header_and_slice(header, items))
    }

    fn header<S: Sort>(&self, extra: S::Extra) -> Header<S> {
        Header {
            handles: AtomicU32::new(1),
            hash: self.hash,
            extra,
        }
    }
}

/// Adds a node to its table, unless an equal one is there by now.
fn keep<S: Sort>(cell: Cell<S>) -> Node<S> {
    let hash = cell.header.header.hash;
    let mut shard = S::table().shard(hash).lock();
    let found = shard.find(hash, |extra, items| {
        *extra == cell.header.header.extra && *items == cell.slice
    });
    if let Some(node) = found.map(Node::another) {
        // The content of the cell goes after the lock: its last users may need other shards.
        drop(shard);
        drop(cell);
        return node;
    }
    shard.bytes += bytes_of::<S>(&cell);
    shard
        .cells
        .insert_unique(spread(hash), cell.clone(), table_hash::<S>);
    drop(shard);
    Node(cell)
}

impl<S: Sort> Clone for Node<S> {
    #[inline]
    fn clone(&self) -> Self {
        Self::another(&self.0)
    }
}

impl<S: Sort> Drop for Node<S> {
    #[inline]
    fn drop(&mut self) {
        if self.0.header.header.handles.fetch_sub(1, Ordering::Release) == 1 {
            S::table().release(&self.0);
        }
    }
}

impl<S: Sort> PartialEq for Node<S> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.address() == other.address()
    }
}

impl<S: Sort> Eq for Node<S> {}

/// All live nodes of one sort.
pub(super) struct Table<S: Sort> {
    shards: [Mutex<Shard<S>>; SHARDS],
}

struct Shard<S: Sort> {
    /// The live nodes whose hash falls into this shard.
    cells: HashTable<Cell<S>>,
    /// Bytes held by those nodes, kept up to date so that a report costs nothing.
    bytes: usize,
}

impl<S: Sort> Table<S> {
    pub(super) const fn new() -> Self {
        Self {
            shards: [const {
                Mutex::new(Shard {
                    cells: HashTable::new(),
                    bytes: 0,
                })
            }; SHARDS],
        }
    }

    #[inline]
    fn shard(&self, hash: u32) -> &Mutex<Shard<S>> {
        // The table inside a shard uses the lowest and the highest bits.
        &self.shards[(spread(hash) >> 40) as usize % SHARDS]
    }

    /// Takes a node without users out of the table, unless it was found again meanwhile.
    #[cold]
    fn release(&self, cell: &Cell<S>) {
        let hash = cell.header.header.hash;
        let mut shard = self.shard(hash).lock();
        if cell.header.header.handles.load(Ordering::Acquire) != 0 {
            return;
        }
        let Ok(entry) = shard.cells.find_entry(spread(hash), |found| {
            std::ptr::eq(&found.header, &cell.header)
        }) else {
            // Two threads saw the count at zero, after a revival in between; the other was first.
            return;
        };
        let (freed, _) = entry.remove();
        shard.bytes -= bytes_of::<S>(&freed);
        shard.shrink();
        drop(shard);
        // The children go with the caller's own reference, after the lock.
        drop(freed);
    }

    /// Reserves capacity for so many more nodes.
    pub(super) fn reserve(&self, nodes: usize) {
        for shard in &self.shards {
            let more = nodes / SHARDS;
            shard.lock().cells.reserve(more, table_hash::<S>);
        }
    }

    fn usage(&self) -> Usage {
        self.shards.iter().fold(Usage::default(), |usage, shard| {
            let shard = shard.lock();
            Usage {
                nodes: usage.nodes + shard.cells.len(),
                bytes: usage.bytes
                    + shard.bytes
                    + shard.cells.capacity() * (size_of::<Cell<S>>() + 1),
            }
        })
    }
}

impl<S: Sort> Shard<S> {
    fn find(&self, hash: u32, is_same: impl Fn(&S::Extra, &[S::Item]) -> bool) -> Option<&Cell<S>> {
        self.cells.find(spread(hash), |cell| {
            cell.header.header.hash == hash && is_same(&cell.header.header.extra, &cell.slice)
        })
    }

    /// Gives memory back after a mass deletion; doubling and quartering keep it amortized.
    fn shrink(&mut self) {
        let capacity = self.cells.capacity();
        if capacity > SHRINK_FLOOR && self.cells.len() < capacity / 4 {
            self.cells.shrink_to(self.cells.len() * 2, table_hash::<S>);
        }
    }
}

fn table_hash<S: Sort>(cell: &Cell<S>) -> u64 {
    spread(cell.header.header.hash)
}

fn bytes_of<S: Sort>(cell: &Cell<S>) -> usize {
    // One word for the reference count and one for the length.
    let node = 2 * size_of::<usize>() + size_of::<Header<S>>() + size_of_val(&cell.slice);
    node + S::extra_bytes(&cell.header.header.extra)
}

/// The size of one table of the interner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Distinct nodes that are alive.
    pub nodes: usize,
    /// Bytes of those nodes and of the table that finds them.
    pub bytes: usize,
}

/// The size of the process-wide interner, by sort of node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InternerUsage {
    /// Strings: values and keys.
    pub strings: Usage,
    /// Arrays.
    pub arrays: Usage,
    /// Objects.
    pub objects: Usage,
    /// Key sets that objects share.
    pub shapes: Usage,
}

impl InternerUsage {
    pub(super) fn of<A: Sort, B: Sort, C: Sort, D: Sort>() -> Self {
        Self {
            strings: A::table().usage(),
            arrays: B::table().usage(),
            objects: C::table().usage(),
            shapes: D::table().usage(),
        }
    }

    /// Distinct nodes that are alive.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.strings.nodes + self.arrays.nodes + self.objects.nodes + self.shapes.nodes
    }

    /// Bytes of all nodes and tables.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.strings.bytes + self.arrays.bytes + self.objects.bytes + self.shapes.bytes
    }
}

impl fmt::Debug for InternerUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InternerUsage")
            .field("nodes", &self.nodes())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
