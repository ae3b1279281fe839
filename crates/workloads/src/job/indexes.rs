//! Sets of completion indexes, kept as intervals.

use std::fmt;

/// A set of completion indexes: intervals in order that neither overlap nor touch.
///
/// Written as `0-2,4,6,7`: runs of three and more with a dash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<Interval>);

/// The indexes from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    first: usize,
    last: usize,
}

impl Indexes {
    /// Reads a text, up to the number of completions. What cannot be read is left out.
    pub(super) fn parse(text: &str, completions: usize) -> Self {
        let mut found = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) else {
                tracing::info!(interval = part, "Corrupted indexes interval, ignoring");
                continue;
            };
            if first >= completions {
                break;
            }
            let last = last.min(completions - 1);
            if first <= last {
                found.push(Interval { first, last });
            }
        }
        Self::from_intervals(found)
    }

    fn from_intervals(mut intervals: Vec<Interval>) -> Self {
        intervals.sort_unstable_by_key(|it| it.first);
        let mut joined: Vec<Interval> = Vec::with_capacity(intervals.len());
        for next in intervals {
            match joined.last_mut() {
                Some(before) if next.first <= before.last.saturating_add(1) => {
                    before.last = before.last.max(next.last);
                }
                _ => joined.push(next),
            }
        }
        Self(joined)
    }

    /// The indexes of both sets.
    pub(super) fn union(&self, other: &Self) -> Self {
        Self::from_intervals(self.0.iter().chain(&other.0).copied().collect())
    }

    /// The number of indexes.
    pub(super) fn len(&self) -> usize {
        let lengths = self.0.iter().map(|it| it.last - it.first + 1);
        lengths.sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, index: usize) -> bool {
        let at = self.0.partition_point(|it| it.last < index);
        self.0.get(at).is_some_and(|it| it.first <= index)
    }

    /// The number of indexes in both sets.
    pub(super) fn common(&self, other: &Self) -> usize {
        let (mut here, mut there, mut count) = (0, 0, 0);
        while let (Some(a), Some(b)) = (self.0.get(here), other.0.get(there)) {
            let (first, last) = (a.first.max(b.first), a.last.min(b.last));
            if first <= last {
                count += last - first + 1;
            }
            if a.last <= b.last {
                here += 1;
            } else {
                there += 1;
            }
        }
        count
    }

    /// The lowest indexes below `completions` that are not in the set, at most so many.
    pub(super) fn missing(&self, completions: usize, limit: usize) -> Vec<usize> {
        let ends = Interval {
            first: completions,
            last: completions,
        };
        let (mut next, mut found) = (0, Vec::new());
        for taken in self.0.iter().chain([&ends]) {
            let end = taken.first.min(completions);
            let left = limit - found.len();
            found.extend((next..end).take(left));
            next = next.max(taken.last.saturating_add(1));
        }
        found
    }
}

impl FromIterator<usize> for Indexes {
    fn from_iter<I: IntoIterator<Item = usize>>(indexes: I) -> Self {
        let single = |index| Interval {
            first: index,
            last: index,
        };
        Self::from_intervals(indexes.into_iter().map(single).collect())
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Interval { first, last }) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(indexes: &[usize]) -> Indexes {
        indexes.iter().copied().collect()
    }

    #[test]
    fn runs_of_three_and_more_have_a_dash() {
        for (indexes, text) in [
            (&[][..], ""),
            (&[3], "3"),
            (&[3, 4], "3,4"),
            (&[7, 6, 4, 2, 1, 0], "0-2,4,6,7"),
            (&[0, 1, 2, 3, 3], "0-3"),
        ] {
            assert_eq!(set(indexes).to_string(), text);
            assert_eq!(Indexes::parse(text, 100), set(indexes));
        }
    }

    #[test]
    fn what_is_out_of_range_or_no_number_is_left_out() {
        for (text, read) in [
            ("0-5", "0-2"),
            ("1,x,2", "1,2"),
            ("2,3,4", "2"),
            ("7", ""),
            ("2-1", ""),
            ("0,1-", "0"),
        ] {
            assert_eq!(Indexes::parse(text, 3).to_string(), read, "{text}");
        }
    }

    #[test]
    fn sets_are_united_counted_and_searched() {
        let both = set(&[0, 1, 5]).union(&set(&[2, 5, 7]));
        assert_eq!(both.to_string(), "0-2,5,7");
        assert_eq!((both.len(), both.common(&set(&[1, 2, 3, 7]))), (5, 3));
        assert!(both.contains(1) && both.contains(7));
        assert!(!both.contains(3) && !both.contains(8));
        assert_eq!(both.missing(10, 3), [3, 4, 6]);
        assert_eq!(both.missing(10, 100), [3, 4, 6, 8, 9]);
        assert_eq!(both.missing(5, 100), [3, 4]);
        assert_eq!(set(&[]).missing(3, 2), [0, 1]);
        assert!(both.missing(2, 9).is_empty());
    }
}
