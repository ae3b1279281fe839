//! Rules compared as sets: which rights of some rules others do not give.
//!
//! A rule is a product of sets: groups, resources, names and verbs. Taking it apart into single
//! rights costs their product, so this does not. Values that the same owned rules mention are
//! alike; they are compared once for all of them. All work is counted and has a ceiling.

use std::collections::{BTreeMap, BTreeSet};

use windlass_core::{Doc, quote};

/// One comparison takes at most so many steps, each a few dozen instructions.
pub(crate) const STEPS_LIMIT: usize = 4_000_000;
/// A message names at most about so many bytes of missing rights.
const TEXT_BYTES_LIMIT: usize = 64 << 10;

/// The comparison would take more than [`STEPS_LIMIT`] steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMuchWork;

/// A rule, each value once and in its order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rule<'a> {
    verbs: Vec<&'a str>,
    groups: Vec<&'a str>,
    resources: Vec<&'a str>,
    /// Empty for all names.
    names: Vec<&'a str>,
    urls: Vec<&'a str>,
}

/// Rights that are missing, by group, resource and name, or by URL.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    verbs: BTreeMap<Thing, Vec<String>>,
    bytes: usize,
    is_cut: bool,
}

/// Something that a right is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Resource {
        group: String,
        resource: String,
        name: Option<String>,
    },
    /// A URL and the verb: those on one URL are not written together.
    Url(String, String),
}

/// Counts steps down to none.
struct Budget(usize);

impl Budget {
    fn spend(&mut self, steps: usize) -> Result<(), TooMuchWork> {
        self.0 = self.0.checked_sub(steps).ok_or(TooMuchWork)?;
        Ok(())
    }
}

impl<'a> Rule<'a> {
    /// Reads a rule.
    pub(crate) fn of(rule: &'a Doc) -> Self {
        let texts = |key: &str| {
            let items = rule.get(key).map(Doc::items).unwrap_or_default();
            let mut known = BTreeSet::new();
            let texts = items.iter().filter_map(Doc::as_str);
            texts.filter(|text| known.insert(*text)).collect()
        };
        Self {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            urls: texts("nonResourceURLs"),
        }
    }
}

/// The rights of `wanted` that `owned` does not give.
pub(crate) fn missing(owned: &[Rule<'_>], wanted: &[Rule<'_>]) -> Result<Missing, TooMuchWork> {
    let mut budget = Budget(STEPS_LIMIT);
    let index = Index::of(owned);
    let mut missing = Missing::default();
    for rule in wanted {
        missing_resources(&index, rule, &mut budget, &mut missing)?;
        missing_urls(&index, rule, &mut budget, &mut missing)?;
        if missing.is_cut {
            break;
        }
    }
    Ok(missing)
}

/// Owned rules by what they mention: each list is sorted and has every rule once.
#[derive(Default)]
struct Index<'a> {
    verbs: BTreeMap<&'a str, Vec<usize>>,
    groups: BTreeMap<&'a str, Vec<usize>>,
    resources: BTreeMap<&'a str, Vec<usize>>,
    names: BTreeMap<&'a str, Vec<usize>>,
    /// The rules for all names.
    nameless: Vec<usize>,
    /// The patterns of rules without names.
    urls: Vec<(usize, &'a str)>,
}

impl<'a> Index<'a> {
    fn of(owned: &[Rule<'a>]) -> Self {
        let mut index = Self::default();
        for (at, rule) in owned.iter().enumerate() {
            let lists = [
                (&mut index.verbs, &rule.verbs),
                (&mut index.groups, &rule.groups),
                (&mut index.resources, &rule.resources),
                (&mut index.names, &rule.names),
            ];
            for (by_value, values) in lists {
                for value in values {
                    by_value.entry(value).or_default().push(at);
                }
            }
            if rule.names.is_empty() {
                index.nameless.push(at);
                index.urls.extend(rule.urls.iter().map(|url| (at, *url)));
            }
        }
        index
    }

    fn verb(&self, verb: &str) -> Vec<usize> {
        union(&[self.verbs.get("*"), self.verbs.get(verb)])
    }

    fn group(&self, group: &str) -> Vec<usize> {
        union(&[self.groups.get("*"), self.groups.get(group)])
    }

    /// A subresource is given by its own name and by that of all resources that have it.
    fn resource(&self, resource: &str) -> Vec<usize> {
        let part = resource
            .split_once('/')
            .map(|(_, part)| format!("*/{part}"));
        let part = part.and_then(|part| self.resources.get(part.as_str()));
        union(&[self.resources.get("*"), self.resources.get(resource), part])
    }

    fn name(&self, name: &str) -> Vec<usize> {
        union(&[Some(&self.nameless), self.names.get(name)])
    }

    fn url(&self, wanted: &str, budget: &mut Budget) -> Result<Vec<usize>, TooMuchWork> {
        budget.spend(self.urls.len())?;
        let covers = |pattern: &str| {
            let prefix = pattern.trim_end_matches('*');
            pattern == wanted || (prefix != pattern && wanted.starts_with(prefix))
        };
        let found = self.urls.iter().filter(|(_, pattern)| covers(pattern));
        let mut found: Vec<usize> = found.map(|(at, _)| *at).collect();
        found.dedup();
        Ok(found)
    }
}

/// Sorted lists as one.
fn union(lists: &[Option<&Vec<usize>>]) -> Vec<usize> {
    let mut all: Vec<usize> = lists.iter().copied().flatten().flatten().copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Values that the same owned rules give, with those rules.
struct Class<'a> {
    values: Vec<&'a str>,
    givers: Vec<usize>,
}

/// Puts values together that the same rules give.
fn classes<'a>(
    values: &[&'a str],
    budget: &mut Budget,
    mut givers: impl FnMut(&str, &mut Budget) -> Result<Vec<usize>, TooMuchWork>,
) -> Result<Vec<Class<'a>>, TooMuchWork> {
    let mut by_givers: BTreeMap<Vec<usize>, Vec<&'a str>> = BTreeMap::new();
    for value in values {
        let givers = givers(value, budget)?;
        budget.spend(1 + givers.len())?;
        by_givers.entry(givers).or_default().push(value);
    }
    let class = |(givers, values)| Class { values, givers };
    Ok(by_givers.into_iter().map(class).collect())
}

fn missing_resources(
    index: &Index<'_>,
    rule: &Rule<'_>,
    budget: &mut Budget,
    missing: &mut Missing,
) -> Result<(), TooMuchWork> {
    let groups = classes(&rule.groups, budget, |group, _| Ok(index.group(group)))?;
    let resources = classes(&rule.resources, budget, |it, _| Ok(index.resource(it)))?;
    let verbs = classes(&rule.verbs, budget, |verb, _| Ok(index.verb(verb)))?;
    let names = match rule.names.as_slice() {
        [] => vec![Class {
            values: Vec::new(),
            givers: index.nameless.clone(),
        }],
        names => classes(names, budget, |name, _| Ok(index.name(name)))?,
    };
    for group in &groups {
        for resource in &resources {
            let both = common(&group.givers, &resource.givers, budget)?;
            for name in &names {
                let three = common(&both, &name.givers, budget)?;
                let mut lacking = BTreeSet::new();
                for verb in &verbs {
                    if common(&three, &verb.givers, budget)?.is_empty() {
                        lacking.extend(verb.values.iter().copied());
                    }
                }
                if lacking.is_empty() {
                    continue;
                }
                budget.spend(rule.verbs.len())?;
                let lacking = rule.verbs.iter().filter(|verb| lacking.contains(*verb));
                let lacking: Vec<&str> = lacking.copied().collect();
                missing.add(group, resource, name, &lacking);
                if missing.is_cut {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

fn missing_urls(
    index: &Index<'_>,
    rule: &Rule<'_>,
    budget: &mut Budget,
    missing: &mut Missing,
) -> Result<(), TooMuchWork> {
    let urls = classes(&rule.urls, budget, |url, budget| index.url(url, budget))?;
    let verbs = classes(&rule.verbs, budget, |verb, _| Ok(index.verb(verb)))?;
    for url in &urls {
        for verb in &verbs {
            if common(&url.givers, &verb.givers, budget)?.is_empty() {
                missing.add_urls(url, verb);
            }
            if missing.is_cut {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The intersection of two sorted lists.
fn common(a: &[usize], b: &[usize], budget: &mut Budget) -> Result<Vec<usize>, TooMuchWork> {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    budget.spend(1 + short.len())?;
    let is_there = |at: &&usize| long.binary_search(at).is_ok();
    Ok(short.iter().filter(is_there).copied().collect())
}

impl Missing {
    /// Returns true if nothing is missing.
    pub(crate) fn is_empty(&self) -> bool {
        self.verbs.is_empty()
    }

    fn add(
        &mut self,
        groups: &Class<'_>,
        resources: &Class<'_>,
        names: &Class<'_>,
        verbs: &[&str],
    ) {
        let all: &[&str] = &[""];
        let is_named = !names.values.is_empty();
        for group in &groups.values {
            for resource in &resources.values {
                for name in if is_named { &names.values } else { all } {
                    let thing = Thing::Resource {
                        group: (*group).to_owned(),
                        resource: (*resource).to_owned(),
                        name: is_named.then(|| (*name).to_owned()),
                    };
                    let bytes = group.len() + resource.len() + name.len();
                    if !self.note(thing, verbs, bytes) {
                        return;
                    }
                }
            }
        }
    }

    fn add_urls(&mut self, urls: &Class<'_>, verbs: &Class<'_>) {
        for url in &urls.values {
            for verb in &verbs.values {
                let thing = Thing::Url((*url).to_owned(), (*verb).to_owned());
                if !self.note(thing, &[verb], url.len()) {
                    return;
                }
            }
        }
    }

    /// Notes verbs on one thing; returns false when the message is long enough.
    fn note(&mut self, thing: Thing, verbs: &[&str], bytes: usize) -> bool {
        /// What the words around the values take.
        const AROUND: usize = 40;
        if self.bytes > TEXT_BYTES_LIMIT {
            self.is_cut = true;
            return false;
        }
        self.bytes += bytes + AROUND;
        let known = self.verbs.entry(thing).or_default();
        for verb in verbs {
            self.bytes += verb.len() + 3;
            known.push((*verb).to_owned());
            if self.bytes > TEXT_BYTES_LIMIT {
                self.is_cut = true;
                return false;
            }
        }
        true
    }

    /// The missing rights, one line for each thing, as upstream writes rules.
    pub(crate) fn describe(&self) -> String {
        let lines = self
            .verbs
            .iter()
            .map(|(thing, verbs)| thing.describe(verbs));
        let lines: BTreeSet<String> = lines.collect();
        let mut text = lines.into_iter().collect::<Vec<_>>().join("\n");
        if self.is_cut {
            text.push_str("\n... and more");
        }
        text
    }
}

impl Thing {
    fn describe(&self, verbs: &[String]) -> String {
        let verbs: Vec<&str> = verbs.iter().map(String::as_str).collect();
        let verbs = list(&verbs);
        match self {
            Self::Url(url, _) => format!("{{NonResourceURLs:{}, Verbs:{verbs}}}", list(&[url])),
            Self::Resource {
                group,
                resource,
                name,
            } => {
                let names = match name {
                    Some(name) => format!(", ResourceNames:{}", list(&[name])),
                    None => String::new(),
                };
                format!(
                    "{{APIGroups:{}, Resources:{}{names}, Verbs:{verbs}}}",
                    list(&[group]),
                    list(&[resource])
                )
            }
        }
    }
}

/// Texts in quotes with spaces between.
pub(crate) fn list(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

#[cfg(test)]
mod tests;
