//! Binary forms: protobuf, and the form in which the store keeps documents.

use serde_json::Value;
use windlass_atlas::{ProtobufDecoder, ProtobufEncoder, decode_protobuf, protobuf_event};
use windlass_core::{Checker, Doc, Packer, Prune, Unpacker, part_numbers};

use crate::{Outcome, model, work};

/// Bytes of JSON for each byte of protobuf: names of fields, and base64.
const JSON_FACTOR_MAX: usize = 256;
const JSON_BYTES_FREE: usize = 4 << 10;

/// A protobuf body: the decoder with a memory agrees with the one without, the strict with the
/// lenient, and what can be encoded decodes to the same document and encodes to the same bytes.
pub fn protobuf(data: &[u8]) -> Outcome {
    work::bounded(work::PURE, data.len(), || {
        let _ = protobuf_event(data);
        let decoded = decode_protobuf(data);
        let remembering = ProtobufDecoder::new(Prune::nothing()).decode(data);
        let strict = ProtobufDecoder::new(Prune::nothing()).strict().decode(data);
        let Ok(decoded) = decoded else {
            assert!(remembering.is_err() && strict.is_err(), "decoders differ");
            return Outcome::Refused;
        };
        assert_eq!(remembering.as_ref(), Ok(&decoded.doc), "with a memory");
        if let Ok(strict) = &strict {
            assert_eq!(strict, &decoded.doc, "strict and lenient");
        }
        let json = decoded.doc.to_json().len();
        let allowed = JSON_BYTES_FREE + JSON_FACTOR_MAX * data.len();
        assert!(json <= allowed, "{json} bytes of JSON");
        let (mut encoder, mut body, mut again) = (ProtobufEncoder::new(), Vec::new(), Vec::new());
        if encoder.write(&decoded.doc, &mut body) {
            let round = decode_protobuf(&body).expect("our own protobuf decodes");
            // An empty time is null in JSON, as Go has it, and a null is not written.
            if !model::any(&model::plain(&decoded.doc), &Value::is_null) {
                assert_eq!(round, decoded, "encoded");
            }
            assert!(encoder.write(&round.doc, &mut again));
            assert_eq!(body, again, "canonical");
        }
        Outcome::Accepted
    })
}

/// A packed document and its parts: packing and unpacking a document that the input spells gives
/// it back; bytes that are no packed document are refused by the checker and the unpacker alike.
pub fn packed(data: &[u8]) -> Outcome {
    work::bounded(work::PURE, data.len(), || {
        let unpacked = Unpacker::new().doc(data);
        let checked = Checker::new().doc(data, |_| {});
        if unpacked.is_ok() {
            assert!(checked.is_ok(), "the checker refuses what unpacks");
            assert!(
                part_numbers(data, |_| {}).is_ok(),
                "the numbers of its parts"
            );
        }
        if let Ok(doc) = &unpacked {
            round_trip(doc);
        }
        match Doc::parse(data) {
            Ok(doc) => round_trip(&doc),
            Err(_) => return Outcome::of(unpacked.is_ok()),
        }
        Outcome::Accepted
    })
}

fn round_trip(doc: &Doc) {
    let (mut packer, mut bytes, mut parts) = (Packer::new(), Vec::new(), Vec::new());
    packer.pack(doc, &mut bytes, &mut parts);
    let (mut unpacker, mut checker) = (Unpacker::new(), Checker::new());
    for part in &parts {
        unpacker
            .part(part.number, &part.bytes)
            .expect("a part of our own");
        checker
            .part(part.number, &part.bytes, |_| {})
            .expect("a part of our own");
    }
    checker.doc(&bytes, |_| {}).expect("bytes of our own");
    assert_eq!(
        unpacker.doc(&bytes).as_ref(),
        Ok(doc),
        "packed and unpacked"
    );
}
