//! What it costs to hold pods as `Doc`s and to read them.

use std::{collections::BTreeMap, hint::black_box};

use serde::Deserialize;
use windlass_bench::{
    contest::{self, Numbers},
    corpus::Corpus,
    meter,
};
use windlass_core::{DecodeError, Doc, ParseOptions, Parser, Prune};

/// Parses as a list or a watch does, with one parser for all objects.
pub(crate) fn with_parser(corpus: &Corpus) -> anyhow::Result<Numbers> {
    let mut parser = Parser::new(options());
    measure(corpus, |text| Ok(parser.parse(text)?.doc))
}

/// Parses each object by itself, as a single request does.
pub(crate) fn one_by_one(corpus: &Corpus) -> anyhow::Result<Numbers> {
    let options = options();
    measure(corpus, |text| Ok(Doc::parse_with(text, &options)?))
}

fn options() -> ParseOptions {
    ParseOptions::pruning(Prune::managed_fields())
}

fn measure(
    corpus: &Corpus,
    mut parse: impl FnMut(&[u8]) -> anyhow::Result<Doc>,
) -> anyhow::Result<Numbers> {
    let held = contest::hold(corpus, &mut parse)?;
    let mut numbers = held.numbers;
    numbers.extend(contest::compare_and_clone(&mut parse)?);
    let docs = &held.objects;
    for (name, ns) in [
        ("view_ns", view_ns(docs, Doc::decode::<View<String>>)?),
        (
            "view_borrowed_ns",
            view_ns(docs, Doc::decode_borrowed::<View<&str>>)?,
        ),
    ] {
        numbers.insert(name.to_owned(), ns);
    }
    Ok(numbers)
}

/// The time to read one view, going round the pods so that none stays warm for free.
fn view_ns<'a, S: AsRef<str>>(
    docs: &'a [Doc],
    read: impl Fn(&'a Doc) -> Result<View<S>, DecodeError>,
) -> anyhow::Result<f64> {
    const CALLS: u32 = 20_000;
    for doc in docs {
        anyhow::ensure!(read(doc)?.text_bytes() > 0, "a view without text");
    }
    let mut round = docs.iter().cycle();
    Ok(meter::ns_per_call(CALLS, || {
        if let Some(doc) = round.next() {
            drop(black_box(read(black_box(doc))));
        }
    }))
}

/// The eight fields that a controller of pods needs, with text that is owned or borrowed.
#[derive(Deserialize)]
#[serde(bound(deserialize = "S: Ord + Deserialize<'de>"))]
struct View<S> {
    metadata: Metadata<S>,
    spec: Spec<S>,
    status: Status<S>,
}

#[derive(Deserialize)]
#[serde(
    rename_all = "camelCase",
    bound(deserialize = "S: Ord + Deserialize<'de>")
)]
struct Metadata<S> {
    name: S,
    namespace: S,
    uid: S,
    labels: BTreeMap<S, S>,
    owner_references: Vec<Owner<S>>,
    deletion_timestamp: Option<S>,
}

#[derive(Deserialize)]
struct Owner<S> {
    uid: S,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec<S> {
    node_name: S,
}

#[derive(Deserialize)]
struct Status<S> {
    phase: S,
}

impl<S: AsRef<str>> View<S> {
    /// How much text there is in all fields.
    fn text_bytes(&self) -> usize {
        let Metadata {
            name,
            namespace,
            uid,
            labels,
            owner_references,
            deletion_timestamp,
        } = &self.metadata;
        let labels = labels.iter().flat_map(|(key, value)| [key, value]);
        let owners = owner_references.iter().map(|owner| &owner.uid);
        [
            name,
            namespace,
            uid,
            &self.spec.node_name,
            &self.status.phase,
        ]
        .into_iter()
        .chain(labels)
        .chain(owners)
        .chain(deletion_timestamp)
        .map(|text| text.as_ref().len())
        .sum()
    }
}
