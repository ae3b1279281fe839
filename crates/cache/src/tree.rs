//! A persistent sorted set: every version shares what it has in common with the one before.
//!
//! The indexer publishes a new version per batch and readers keep the version they took, so no
//! node is ever changed in place: an insert builds the few nodes on its way anew, at their exact
//! size. Nodes are small, because each element that is copied costs a reference count.

use std::{cmp::Ordering, sync::Arc};

/// The largest number of elements of a node.
const WIDTH: usize = 32;

/// A node with fewer elements than this is joined with a neighbour.
const WIDTH_MIN: usize = WIDTH / 4;

/// An element of a [`Tree`]; it has a total order.
pub(crate) trait Element: Clone {
    /// The order of this element relative to another.
    fn order(&self, other: &Self) -> Ordering;
}

/// A sorted set of elements. A clone is another version, and costs one reference count.
#[derive(Clone)]
pub(crate) struct Tree<T> {
    /// `None` stands for the empty set; no node is ever empty.
    root: Option<Node<T>>,
    len: usize,
}

/// A part of the tree. All leaves are at the same depth.
#[derive(Clone)]
enum Node<T> {
    Leaf(Arc<[T]>),
    Branch(Arc<[Self]>),
}

/// A node that grew: it may have become two.
enum Grown<T> {
    One(Node<T>),
    Two(Node<T>, Node<T>),
}

impl<T> Default for Tree<T> {
    fn default() -> Self {
        Self { root: None, len: 0 }
    }
}

impl<T: Element> Tree<T> {
    /// The set of elements that are already in order and distinct, in full nodes.
    pub(crate) fn from_sorted(elements: &[T]) -> Self {
        debug_assert!(
            elements.is_sorted_by(|a, b| a.order(b) == Ordering::Less),
            "sorted"
        );
        let mut level: Vec<Node<T>> = elements
            .chunks(WIDTH)
            .map(|chunk| Node::Leaf(chunk.into()))
            .collect();
        while level.len() > 1 {
            level = level
                .chunks(WIDTH)
                .map(|chunk| Node::Branch(chunk.into()))
                .collect();
        }
        Self {
            root: level.pop(),
            len: elements.len(),
        }
    }

    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes of all nodes.
    pub(crate) fn bytes(&self) -> usize {
        self.root.as_ref().map_or(0, Node::bytes)
    }

    /// The element that the probe calls equal. The probe says where an element stands relative to
    /// what is looked for.
    pub(crate) fn get(&self, probe: impl Fn(&T) -> Ordering) -> Option<&T> {
        let mut node = self.root.as_ref()?;
        loop {
            match node {
                Node::Leaf(items) => {
                    return items.binary_search_by(probe).ok().map(|at| &items[at]);
                }
                Node::Branch(children) => node = &children[child_position(children, &probe)],
            }
        }
    }

    /// Inserts an element; returns the one that it replaced.
    pub(crate) fn insert(&mut self, element: T) -> Option<T> {
        let mut replaced = None;
        self.root = Some(match &self.root {
            None => Node::Leaf([element].into()),
            Some(root) => match root.insert(element, &mut replaced) {
                Grown::One(node) => node,
                Grown::Two(left, right) => Node::Branch([left, right].into()),
            },
        });
        self.len += usize::from(replaced.is_none());
        replaced
    }

    /// Takes out the element that the probe calls equal.
    pub(crate) fn remove(&mut self, probe: impl Fn(&T) -> Ordering) -> Option<T> {
        let (rest, removed) = self.root.as_ref()?.remove(&probe)?;
        self.root = rest;
        // A branch with one child is only a detour.
        while let Some(Node::Branch(children)) = &self.root
            && let [only] = &children[..]
        {
            self.root = Some(only.clone());
        }
        self.len -= 1;
        Some(removed)
    }

    /// All elements, in order.
    pub(crate) fn iter(&self) -> Iter<'_, T> {
        self.iter_from(|_| Ordering::Equal)
    }

    /// The elements, in order, from the first that the probe does not call less.
    pub(crate) fn iter_from(&self, probe: impl Fn(&T) -> Ordering) -> Iter<'_, T> {
        let mut iter = Iter {
            branches: Vec::new(),
            leaf: [].iter(),
        };
        let mut next = self.root.as_ref();
        while let Some(node) = next {
            match node {
                Node::Leaf(items) => {
                    let start = items.partition_point(|item| probe(item) == Ordering::Less);
                    iter.leaf = items[start..].iter();
                    next = None;
                }
                Node::Branch(children) => {
                    // The child before the first that is not less may still hold the start.
                    let at = children
                        .partition_point(|child| probe(child.first()) == Ordering::Less)
                        .saturating_sub(1);
                    iter.branches.push(children[at + 1..].iter());
                    next = Some(&children[at]);
                }
            }
        }
        iter
    }
}

impl<T: Element> Node<T> {
    fn first(&self) -> &T {
        let mut node = self;
        loop {
            match node {
                Self::Leaf(items) => return &items[0],
                Self::Branch(children) => node = &children[0],
            }
        }
    }

    fn bytes(&self) -> usize {
        /// The two reference counts of an `Arc`.
        const HEADER: usize = 2 * size_of::<usize>();
        HEADER
            + match self {
                Self::Leaf(items) => size_of_val(&**items),
                Self::Branch(children) => {
                    size_of_val(&**children) + children.iter().map(Self::bytes).sum::<usize>()
                }
            }
    }

    fn width(&self) -> usize {
        match self {
            Self::Leaf(items) => items.len(),
            Self::Branch(children) => children.len(),
        }
    }

    fn insert(&self, element: T, replaced: &mut Option<T>) -> Grown<T> {
        match self {
            Self::Leaf(items) => match items.binary_search_by(|item| item.order(&element)) {
                Ok(at) => {
                    *replaced = Some(items[at].clone());
                    Grown::One(Self::Leaf(splice(items, at, 1, [element])))
                }
                Err(at) => grow(&splice(items, at, 0, [element]), Self::Leaf),
            },
            Self::Branch(children) => {
                let at = child_position(children, |item| item.order(&element));
                match children[at].insert(element, replaced) {
                    Grown::One(node) => Grown::One(Self::Branch(splice(children, at, 1, [node]))),
                    Grown::Two(left, right) => {
                        grow(&splice(children, at, 1, [left, right]), Self::Branch)
                    }
                }
            }
        }
    }

    /// The node without the element, and the element; `None` if it is not here.
    fn remove(&self, probe: &impl Fn(&T) -> Ordering) -> Option<(Option<Self>, T)> {
        match self {
            Self::Leaf(items) => {
                let at = items.binary_search_by(probe).ok()?;
                let rest = (items.len() > 1).then(|| Self::Leaf(splice(items, at, 1, [])));
                Some((rest, items[at].clone()))
            }
            Self::Branch(children) => {
                let at = child_position(children, probe);
                let (rest, removed) = children[at].remove(probe)?;
                Some((self::shrink(children, at, rest), removed))
            }
        }
    }

    /// One or two nodes with the elements of two neighbours.
    fn join(&self, right: &Self) -> Grown<T> {
        match (self, right) {
            (Self::Leaf(a), Self::Leaf(b)) => grow(&concat(a, b), Self::Leaf),
            (Self::Branch(a), Self::Branch(b)) => grow(&concat(a, b), Self::Branch),
            _ => unreachable!("invariant: all leaves are at the same depth"),
        }
    }
}

/// The branch of these children with one replaced by what remains of it.
fn shrink<T: Element>(children: &[Node<T>], at: usize, rest: Option<Node<T>>) -> Option<Node<T>> {
    let Some(rest) = rest else {
        return (children.len() > 1).then(|| Node::Branch(splice(children, at, 1, [])));
    };
    if rest.width() >= WIDTH_MIN || children.len() == 1 {
        return Some(Node::Branch(splice(children, at, 1, [rest])));
    }
    let (start, joined) = if at == 0 {
        (0, rest.join(&children[1]))
    } else {
        (at - 1, children[at - 1].join(&rest))
    };
    Some(Node::Branch(match joined {
        Grown::One(node) => splice(children, start, 2, [node]),
        Grown::Two(left, right) => splice(children, start, 2, [left, right]),
    }))
}

/// The child that holds what the probe looks for, if any child does.
fn child_position<T: Element>(children: &[Node<T>], probe: impl Fn(&T) -> Ordering) -> usize {
    children
        .partition_point(|child| probe(child.first()) != Ordering::Greater)
        .saturating_sub(1)
}

fn grow<E: Clone, T>(elements: &Arc<[E]>, node: fn(Arc<[E]>) -> Node<T>) -> Grown<T> {
    if elements.len() <= WIDTH {
        return Grown::One(node(elements.clone()));
    }
    let (left, right) = elements.split_at(elements.len() / 2);
    Grown::Two(node(left.into()), node(right.into()))
}

/// A copy with `removed` elements at a position replaced by others.
fn splice<E: Clone, const N: usize>(
    elements: &[E],
    at: usize,
    removed: usize,
    inserted: [E; N],
) -> Arc<[E]> {
    let (before, after) = (&elements[..at], &elements[at + removed..]);
    before
        .iter()
        .cloned()
        .chain(inserted)
        .chain(after.iter().cloned())
        .collect()
}

fn concat<E: Clone>(left: &[E], right: &[E]) -> Arc<[E]> {
    left.iter().chain(right).cloned().collect()
}

/// The elements of a [`Tree`] from some point on.
pub(crate) struct Iter<'a, T> {
    /// The rest of the branches on the way to the leaf, outermost first.
    branches: Vec<std::slice::Iter<'a, Node<T>>>,
    leaf: std::slice::Iter<'a, T>,
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(item) = self.leaf.next() {
                return Some(item);
            }
            match self.branches.last_mut()?.next() {
                None => drop(self.branches.pop()),
                Some(Node::Leaf(items)) => self.leaf = items.iter(),
                Some(Node::Branch(children)) => self.branches.push(children.iter()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::{prelude::*, test_runner::RngSeed};

    use super::*;

    impl Element for u16 {
        fn order(&self, other: &Self) -> Ordering {
            self.cmp(other)
        }
    }

    fn depths<T>(node: &Node<T>) -> BTreeSet<usize> {
        match node {
            Node::Leaf(_) => [0].into(),
            Node::Branch(children) => children
                .iter()
                .flat_map(depths)
                .map(|depth| depth + 1)
                .collect(),
        }
    }

    fn config() -> ProptestConfig {
        let rng_seed = RngSeed::Fixed(1);
        ProptestConfig {
            rng_seed,
            failure_persistence: None,
            ..ProptestConfig::with_cases(128)
        }
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn tree_equals_a_btree_set(
            start in 0..2000_u16,
            operations in prop::collection::vec((any::<bool>(), 0..2000_u16), 0..2000),
        ) {
            let mut model: BTreeSet<u16> = (0..start).collect();
            let mut tree = Tree::from_sorted(&model.iter().copied().collect::<Vec<_>>());
            for (is_insert, value) in operations {
                let before = tree.clone();
                if is_insert {
                    prop_assert_eq!(tree.insert(value).is_none(), model.insert(value));
                } else {
                    prop_assert_eq!(tree.remove(|x| x.cmp(&value)).is_some(), model.remove(&value));
                }
                prop_assert_eq!(tree.len(), model.len());
                prop_assert_eq!(tree.get(|x| x.cmp(&value)).is_some(), model.contains(&value));
                prop_assert!(before.len().abs_diff(tree.len()) <= 1);
            }
            prop_assert!(tree.iter().eq(model.iter()));
            prop_assert!(tree.iter_from(|x| x.cmp(&700)).eq(model.range(700..)));
            if let Some(root) = &tree.root {
                prop_assert_eq!(depths(root).len(), 1);
            }
        }
    }

    #[test]
    fn the_nodes_of_a_tree_that_shrinks_are_joined() {
        let mut tree = Tree::from_sorted(&(0..20_000).collect::<Vec<u16>>());
        for value in (0..20_000).filter(|value| value % 20 != 0) {
            tree.remove(|x| x.cmp(&value));
        }
        let fresh = Tree::from_sorted(&tree.iter().copied().collect::<Vec<_>>());
        assert_eq!(fresh.len(), 1000);
        assert!(
            tree.bytes() < 4 * fresh.bytes(),
            "{} and {}",
            tree.bytes(),
            fresh.bytes()
        );
    }

    #[test]
    fn an_old_version_is_not_changed_by_a_new_one() {
        let old = Tree::from_sorted(&(0..500).collect::<Vec<u16>>());
        let mut new = old.clone();
        for value in 0..500 {
            new.remove(|x| x.cmp(&value));
        }
        assert_eq!(new.len(), 0);
        assert!(new.iter().next().is_none());
        assert!(old.iter().copied().eq(0..500));
    }
}
