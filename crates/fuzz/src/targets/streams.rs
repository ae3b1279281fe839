//! Lists and watches as clients read them, in chunks of any size.

use bytes::Bytes;
use windlass_client::{ListDecoder, WatchDecoder};
use windlass_core::{Doc, Prune};

use crate::{Outcome, work};

/// The longest item and line.
const ITEM_BYTES_MAX: usize = 4 << 10;

/// The chunks of a body: cut nowhere, after every byte, and at places that its bytes say.
fn cuts(data: &[u8]) -> [Vec<Bytes>; 3] {
    let bytes = Bytes::copy_from_slice(data);
    let ones = (0..data.len()).map(|at| bytes.slice(at..=at)).collect();
    let (mut pieces, mut at) = (Vec::new(), 0);
    while at < data.len() {
        let end = (at + 1 + usize::from(data[at]) % 17).min(data.len());
        pieces.push(bytes.slice(at..end));
        at = end;
    }
    [vec![bytes], ones, pieces]
}

/// The body of a list: the items and the error are the same however it is cut; without an error
/// they are those of the whole document.
pub fn list_stream(data: &[u8]) -> Outcome {
    work::bounded(work::PURE, data.len(), || {
        let [whole, ones, pieces] = cuts(data).map(|chunks| list(&chunks));
        assert_eq!(whole, ones, "cut after every byte");
        assert_eq!(whole, pieces, "cut into pieces");
        let (items, error) = whole;
        if error.is_some() {
            return Outcome::Refused;
        }
        if let Ok(doc) = Doc::parse(data) {
            assert_eq!(items.len(), doc.at("/items").items().len(), "items");
        }
        Outcome::Accepted
    })
}

fn list(chunks: &[Bytes]) -> (Vec<String>, Option<String>) {
    let mut decoder = ListDecoder::with_limit(Prune::managed_fields(), ITEM_BYTES_MAX);
    let mut items = Vec::new();
    for chunk in chunks {
        decoder.push(chunk.clone());
        loop {
            match decoder.next_item() {
                Ok(Some(item)) => items.push(format!("{item:?}")),
                Ok(None) => break,
                Err(error) => return (items, Some(format!("{error:?}"))),
            }
        }
    }
    let error = decoder.finish().err().map(|error| format!("{error:?}"));
    (items, error)
}

/// The body of a watch: the events and errors are the same however it is cut.
pub fn watch_stream(data: &[u8]) -> Outcome {
    work::bounded(work::PURE, data.len(), || {
        let [whole, ones, pieces] = cuts(data).map(|chunks| watch(&chunks));
        assert_eq!(whole, ones, "cut after every byte");
        assert_eq!(whole, pieces, "cut into pieces");
        Outcome::of(whole.iter().any(|event| event.starts_with("Ok")))
    })
}

fn watch(chunks: &[Bytes]) -> Vec<String> {
    let mut decoder = WatchDecoder::with_limit(Prune::managed_fields(), ITEM_BYTES_MAX);
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk.clone());
        while let Some(event) = decoder.next_event() {
            let is_end = event
                .as_ref()
                .is_err_and(|error| !matches!(error, windlass_client::WatchError::Undecodable(_)));
            events.push(format!("{event:?}"));
            if is_end {
                return events;
            }
        }
    }
    events.extend(decoder.finish().map(|event| format!("{event:?}")));
    events
}
