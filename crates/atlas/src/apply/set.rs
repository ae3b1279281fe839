//! Sets of fields.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use windlass_core::Str;

use super::element::PathElement;
use super::schema::Schema;

/// A set of paths into an object, kept as a tree.
///
/// A path and the paths below it are members on their own: a map may be in the set without its
/// keys, and keys without their map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    pub(super) members: BTreeSet<PathElement>,
    /// Sets below a step; never empty ones.
    pub(super) children: BTreeMap<PathElement, Self>,
}

impl FieldSet {
    /// The set without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A set of paths that lead through fields only, such as `["metadata", "name"]`.
    #[must_use]
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::new();
        for path in paths {
            let path: Vec<_> = path
                .iter()
                .map(|it| PathElement::Field(Str::new(it)))
                .collect();
            set.insert(&path);
        }
        set
    }

    /// Returns true if the set has no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// Returns true if a field of the root is a member.
    #[must_use]
    pub fn has_field(&self, name: &str) -> bool {
        self.members.contains(&PathElement::Field(Str::new(name)))
    }

    /// The first steps of all paths, each with whether it is a member and with what is below it.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&PathElement, bool, Option<&Self>)> {
        let members = self.members.iter();
        let members = members.map(|step| (step, true, self.children.get(step)));
        let others = self.children.iter();
        let others = others.filter(|(step, _)| !self.members.contains(step));
        members.chain(others.map(|(step, child)| (step, false, Some(child))))
    }

    /// Adds a path. The root cannot be a member.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((last, way)) = path.split_last() else {
            return;
        };
        let mut set = self;
        for step in way {
            if !set.children.contains_key(step) {
                set.children.insert(step.clone(), Self::new());
            }
            set = set
                .children
                .get_mut(step)
                .expect("invariant: the child was made");
        }
        set.members.insert(last.clone());
    }

    /// Adds a step, as a member or not, with what is below it.
    pub(super) fn attach(&mut self, step: PathElement, is_member: bool, below: Self) {
        if !below.is_empty() {
            let all = match self.children.remove(&step) {
                Some(known) => known.union(&below),
                None => below,
            };
            self.children.insert(step.clone(), all);
        }
        if is_member {
            self.members.insert(step);
        }
    }

    /// The union of both sets.
    #[must_use]
    pub fn union(mut self, other: &Self) -> Self {
        self.members.extend(other.members.iter().cloned());
        for (step, theirs) in &other.children {
            let ours = self.children.remove(step).unwrap_or_default();
            self.children.insert(step.clone(), ours.union(theirs));
        }
        self
    }

    /// The intersection of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let both = self.children.iter().filter_map(|(step, ours)| {
            let both = ours.intersection(other.children.get(step)?);
            (!both.is_empty()).then(|| (step.clone(), both))
        });
        Self {
            members: self.members.intersection(&other.members).cloned().collect(),
            children: both.collect(),
        }
    }

    /// Returns true if the sets have a member in common.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        let (few, many) = match self.members.len() < other.members.len() {
            true => (&self.members, &other.members),
            false => (&other.members, &self.members),
        };
        let (small, large) = match self.children.len() < other.children.len() {
            true => (&self.children, &other.children),
            false => (&other.children, &self.children),
        };
        few.iter().any(|step| many.contains(step))
            || small.iter().any(|(step, inner)| {
                let same = large.get(step);
                same.is_some_and(|same| same.intersects(inner))
            })
    }

    /// The members of this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let left = self.children.iter().filter_map(|(step, ours)| {
            let left = match other.children.get(step) {
                Some(theirs) => ours.difference(theirs),
                None => ours.clone(),
            };
            (!left.is_empty()).then(|| (step.clone(), left))
        });
        Self {
            members: self.members.difference(&other.members).cloned().collect(),
            children: left.collect(),
        }
    }

    /// The members of this set that are neither in the other nor below one of its members.
    #[must_use]
    pub fn difference_below(&self, other: &Self) -> Self {
        let left = self.children.iter().filter_map(|(step, ours)| {
            if other.members.contains(step) {
                return None;
            }
            let left = match other.children.get(step) {
                Some(theirs) => ours.difference_below(theirs),
                None => ours.clone(),
            };
            (!left.is_empty()).then(|| (step.clone(), left))
        });
        Self {
            members: self.members.difference(&other.members).cloned().collect(),
            children: left.collect(),
        }
    }

    /// This set, and every declared field that something below it is in the set of.
    pub(super) fn with_named_fields<S: Schema>(&self, schema: Option<S>) -> Self {
        let mut named = Self {
            members: self.members.clone(),
            children: BTreeMap::new(),
        };
        for (step, child) in &self.children {
            let inner = match (step, schema) {
                (PathElement::Field(name), Some(schema)) => {
                    if schema.is_declared(name) {
                        named.members.insert(step.clone());
                    }
                    schema.field(name)
                }
                (PathElement::Key(_), Some(schema)) => schema.item(),
                _ => None,
            };
            named
                .children
                .insert(step.clone(), child.with_named_fields(inner));
        }
        named
    }

    /// All paths in order, each as text.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let mut room = usize::MAX;
        self.paths_within(&mut room)
    }

    /// The paths in order until their texts have used up so many bytes. Each names all that it
    /// leads through, so that all of them may be far longer than the object.
    pub(super) fn paths_within(&self, room: &mut usize) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths("", room, &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &str, room: &mut usize, out: &mut Vec<String>) {
        let path = |step: &PathElement, room: &mut usize| {
            let path = format!("{prefix}{step}");
            *room = room.saturating_sub(path.len());
            path
        };
        for step in &self.members {
            if *room == 0 {
                return;
            }
            out.push(path(step, room));
        }
        for (step, child) in &self.children {
            if *room == 0 {
                return;
            }
            child.collect_paths(&path(step, room), room, out);
        }
    }
}

impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.paths().join("\n"))
    }
}
