//! A long list in which an insertion or removal anywhere is cheap.

/// Items of a chunk when the list is made. A chunk of twice as many is split.
const CHUNK: usize = 512;

/// A list in chunks: a change moves the items of one chunk, and finding an index walks the chunks.
#[derive(Debug)]
pub(super) struct Chunks<T> {
    /// None of them is empty.
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Chunks<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    pub(super) fn get(&self, index: usize) -> Option<&T> {
        let (chunk, offset) = self.locate(index);
        self.chunks.get(chunk)?.get(offset)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let (chunk, offset) = self.locate(index);
        self.chunks.get_mut(chunk)?.get_mut(offset)
    }

    /// Inserts in front of the item at the index, or behind the last one.
    pub(super) fn insert(&mut self, index: usize, item: T) {
        let (mut chunk, mut offset) = self.locate(index);
        if chunk == self.chunks.len() {
            // Behind the end.
            match chunk.checked_sub(1) {
                Some(last) => (chunk, offset) = (last, self.chunks[last].len()),
                None => self.chunks.push(Vec::new()),
            }
        }
        let items = &mut self.chunks[chunk];
        items.insert(offset.min(items.len()), item);
        self.len += 1;
        if items.len() >= 2 * CHUNK {
            let rest = items.split_off(CHUNK);
            self.chunks.insert(chunk + 1, rest);
        }
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<T> {
        let (chunk, offset) = self.locate(index);
        let items = self.chunks.get_mut(chunk)?;
        let removed = items.remove(offset);
        self.len -= 1;
        if items.is_empty() {
            self.chunks.remove(chunk);
        }
        Some(removed)
    }

    /// The chunk of an index and the position in it; behind the last chunk if the index is.
    fn locate(&self, index: usize) -> (usize, usize) {
        let mut offset = index;
        for (chunk, items) in self.chunks.iter().enumerate() {
            if offset < items.len() {
                return (chunk, offset);
            }
            offset -= items.len();
        }
        (self.chunks.len(), offset)
    }
}

impl<T> FromIterator<T> for Chunks<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let (mut chunks, mut len) = (Vec::new(), 0);
        let mut items = items.into_iter().peekable();
        while items.peek().is_some() {
            let chunk: Vec<T> = items.by_ref().take(CHUNK).collect();
            len += chunk.len();
            chunks.push(chunk);
        }
        Self { chunks, len }
    }
}

impl<T> IntoIterator for Chunks<T> {
    type Item = T;
    type IntoIter = std::iter::Flatten<std::vec::IntoIter<Vec<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.chunks.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_behave_as_one_list() {
        let mut plain: Vec<usize> = (0..3 * CHUNK).collect();
        let mut chunks: Chunks<usize> = plain.iter().copied().collect();
        let mut state = 7_usize;
        for step in 0..8 * CHUNK {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let index = (state >> 33) % (plain.len() + 1);
            if step % 3 == 2 || step > 5 * CHUNK {
                let removed = (index < plain.len()).then(|| plain.remove(index));
                assert_eq!(chunks.remove(index), removed);
            } else {
                plain.insert(index, step);
                chunks.insert(index, step);
            }
            assert_eq!(chunks.len(), plain.len());
            assert_eq!(chunks.get(index), plain.get(index));
        }
        assert!(chunks.iter().eq(&plain));
        while !plain.is_empty() {
            assert_eq!(chunks.remove(0), Some(plain.remove(0)));
        }
        assert_eq!(chunks.remove(0), None);
        chunks.insert(0, 1);
        assert_eq!(chunks.into_iter().collect::<Vec<_>>(), [1]);
    }
}
