//! One way to hold the pods of the corpus in memory, measured.
//!
//! All contestants run this same code, each in a process of its own: the text of a few hundred
//! pods is made in a buffer that exists before the first measurement, then decoded, and only the
//! decoding is timed.

use std::{collections::BTreeMap, hint::black_box, time::Duration};

use crate::{corpus::Corpus, meter};

/// How many pods are made at a time.
const PODS_PER_BLOCK: usize = 200;

/// The figures of a contestant, by name.
pub type Numbers = BTreeMap<String, f64>;

/// The objects that a contestant holds, and what they cost.
#[derive(Debug)]
pub struct Held<T> {
    /// The objects, one per pod.
    pub objects: Vec<T>,
    /// `json_bytes_per_pod`, `bytes_per_pod` and `decode_cpu_s`.
    pub numbers: Numbers,
}

/// Decodes and keeps every pod of the corpus.
pub fn hold<T>(
    corpus: &Corpus,
    mut decode: impl FnMut(&[u8]) -> anyhow::Result<T>,
) -> anyhow::Result<Held<T>> {
    let mut block = Block::default();
    let mut json_bytes = 0;
    // This first pass leaves the buffer as large as it will ever be.
    for start in (0..corpus.len()).step_by(PODS_PER_BLOCK) {
        json_bytes += block.fill(corpus, start);
    }
    let rss_before = meter::rss_bytes()?;
    let mut objects = Vec::with_capacity(corpus.len());
    let mut cpu = Duration::ZERO;
    for start in (0..corpus.len()).step_by(PODS_PER_BLOCK) {
        block.fill(corpus, start);
        let before = meter::cpu();
        for text in block.texts() {
            objects.push(decode(text)?);
        }
        cpu += meter::cpu() - before;
    }
    let rss_bytes = meter::rss_bytes()?.saturating_sub(rss_before);
    let pods = corpus.len() as f64;
    let numbers = named([
        ("json_bytes_per_pod", json_bytes as f64 / pods),
        ("bytes_per_pod", rss_bytes as f64 / pods),
        ("decode_cpu_s", cpu.as_secs_f64()),
    ]);
    Ok(Held { objects, numbers })
}

/// Measures how long it takes to compare two equal objects that were decoded separately, a small
/// one and a whole pod, and to clone the pod.
pub fn compare_and_clone<T: Clone + PartialEq>(
    mut decode: impl FnMut(&[u8]) -> anyhow::Result<T>,
) -> anyhow::Result<Numbers> {
    const SMALL: &[u8] = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#;
    const CALLS: u32 = 20_000;
    let mut pod = Vec::new();
    Corpus::new(1).write_pod(0, &mut pod);
    let mut equal_ns = |text: &[u8]| {
        let (left, right) = (decode(text)?, decode(text)?);
        anyhow::ensure!(left == right, "an object differs from itself");
        let ns = meter::ns_per_call(CALLS, || {
            black_box(black_box(&left) == black_box(&right));
        });
        anyhow::Ok((ns, left))
    };
    let (equal_ns_small, _) = equal_ns(SMALL)?;
    let (equal_ns_11k, object) = equal_ns(&pod)?;
    let clone_ns = meter::ns_per_call(CALLS, || drop(black_box(black_box(&object).clone())));
    Ok(named([
        ("equal_ns_small", equal_ns_small),
        ("equal_ns_11k", equal_ns_11k),
        ("clone_ns", clone_ns),
    ]))
}

fn named<const N: usize>(numbers: [(&str, f64); N]) -> Numbers {
    numbers
        .map(|(name, number)| (name.to_owned(), number))
        .into()
}

/// Writes figures as the one line of JSON that a contestant prints.
#[must_use]
pub fn to_json(numbers: &Numbers) -> String {
    let members: Vec<String> = numbers
        .iter()
        .map(|(name, value)| format!("{name:?}:{value}"))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// The texts of some pods, in memory that is used again and again.
#[derive(Default)]
struct Block {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Block {
    /// Replaces the content by the pods from `start` on, and returns its size.
    fn fill(&mut self, corpus: &Corpus, start: usize) -> usize {
        self.text.clear();
        self.ends.clear();
        for index in start..corpus.len().min(start + PODS_PER_BLOCK) {
            corpus.write_pod(index, &mut self.text);
            self.ends.push(self.text.len());
        }
        self.text.len()
    }

    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.text[start..*end])
    }
}
