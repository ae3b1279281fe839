//! Paths into documents.

use std::fmt;

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A field of an object.
    Key(String),
    /// An item of an array.
    Index(usize),
}

/// The way from the root of a document to one of its values.
///
/// Printed the way Kubernetes writes field paths: `spec.containers[0].image`, and keys that hold
/// a dot or another character out of the ordinary in brackets: `metadata.labels[app.io/name]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Vec<Segment>);

impl Path {
    /// The root.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// The steps from the root on.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// This path and one field more.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.0.push(Segment::Key(key.to_owned()));
        self
    }

    /// This path and one item more.
    #[must_use]
    pub fn index(mut self, index: usize) -> Self {
        self.0.push(Segment::Index(index));
        self
    }

    pub(super) fn push(&mut self, segment: Segment) {
        self.0.push(segment);
    }

    pub(super) fn pop(&mut self) {
        self.0.pop();
    }

    /// For paths that were collected from the innermost step outwards.
    pub(super) fn reversed(mut self) -> Self {
        self.0.reverse();
        self
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) if key.is_empty() || !key.bytes().all(is_plain) => {
                    write!(f, "[{key}]")?;
                }
                Segment::Key(key) if position == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'$')
}
