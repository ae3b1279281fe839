#![expect(
    clippy::vec_init_then_push,
    reason = "the macro of this crate pushes field by field"
)]

use super::*;
use crate::doc;

fn pod(number: i64) -> Doc {
    let image = "registry.example.com/a/rather/long/name/of/an/image:v1";
    doc!({
        "kind": "Pod",
        "metadata": { "name": (format!("web-{number}")), "labels": { "app": "web" }, "generation": number },
        "spec": {
            "containers": [{ "name": "web", "image": image, "args": ["-a", "-b", "--long-option=value"] }],
            "weight": 1.5, "negative": (-7), "large": (u64::MAX), "none": null, "yes": true, "no": false,
            "empty": {}, "nothing": []
        },
        "status": { "message": (format!("{image} {image} {number}")) }
    })
}

/// Packs documents and reads them back with nothing but the bytes.
fn round_trip(docs: &[Doc]) -> (Vec<Vec<u8>>, Vec<NewPart>) {
    let (mut packer, mut parts, mut rows) = (Packer::new(), Vec::new(), Vec::new());
    for doc in docs {
        let mut row = Vec::new();
        packer.pack(doc, &mut row, &mut parts);
        rows.push(row);
    }
    let mut unpacker = Unpacker::new();
    for part in &parts {
        unpacker.part(part.number, &part.bytes).unwrap();
    }
    for (doc, row) in docs.iter().zip(&rows) {
        assert_eq!(unpacker.doc(row).as_ref(), Ok(doc));
    }
    (rows, parts)
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    let mut found = Vec::new();
    part_numbers(bytes, |number| found.push(number)).unwrap();
    found
}

#[test]
fn documents_are_read_back_as_they_were() {
    let docs: Vec<Doc> = (0..5).map(pod).collect();
    let (rows, parts) = round_trip(&docs);
    assert!(!parts.is_empty());
    assert!(
        rows[4].len() * 2 < rows[0].len(),
        "what is shared is not repeated"
    );
    for scalar in [
        Doc::NULL,
        true.into(),
        (-1).into(),
        "x".into(),
        0.5.into(),
        doc!([]),
        doc!({}),
    ] {
        round_trip(&[scalar]);
    }
}

#[test]
fn part_becomes_one_when_it_comes_again() {
    let (rows, parts) = round_trip(&[pod(0)]);
    assert!(parts.is_empty());
    assert!(numbers(&rows[0]).is_empty());
    let (rows, parts) = round_trip(&[pod(0), pod(1), pod(2)]);
    let known: Vec<u64> = parts.iter().map(|part| part.number).collect();
    for (position, part) in parts.iter().enumerate() {
        let earlier = &known[..position];
        assert!(
            numbers(&part.bytes)
                .iter()
                .all(|number| earlier.contains(number))
        );
    }
    assert!(!numbers(&rows[2]).is_empty());
    assert!(
        numbers(&rows[2])
            .iter()
            .all(|number| known.contains(number))
    );
}

#[test]
fn forgotten_part_is_not_referred_to() {
    let (mut packer, mut parts) = (Packer::new(), Vec::new());
    for number in 0..3 {
        packer.pack(&pod(number), &mut Vec::new(), &mut parts);
    }
    for part in &parts {
        packer.forget(part.number);
    }
    let (mut row, mut later) = (Vec::new(), Vec::new());
    packer.pack(&pod(3), &mut row, &mut later);
    let mut unpacker = Unpacker::new();
    for part in &later {
        unpacker.part(part.number, &part.bytes).unwrap();
    }
    assert_eq!(unpacker.doc(&row), Ok(pod(3)));
}

#[test]
fn packer_goes_on_with_the_parts_that_were_read() {
    let docs: Vec<Doc> = (0..3).map(pod).collect();
    let (rows, parts) = round_trip(&docs);
    let mut unpacker = Unpacker::new();
    for part in &parts {
        unpacker.part(part.number, &part.bytes).unwrap();
    }
    let mut packer = unpacker.packer();
    let (mut row, mut later) = (Vec::new(), Vec::new());
    packer.pack(&docs[2], &mut row, &mut later);
    assert_eq!(row, rows[2]);
    assert!(later.is_empty());
    let whole = doc!([(docs[0].clone()), (docs[0].clone())]);
    packer.pack(&whole, &mut Vec::new(), &mut later);
    let last = parts.last().unwrap().number;
    assert!(later.iter().all(|part| part.number > last));
}

#[test]
fn damaged_bytes_are_refused_or_read_as_something() {
    let docs: Vec<Doc> = (0..3).map(pod).collect();
    let (rows, parts) = round_trip(&docs);
    let (mut unpacker, mut checker) = (Unpacker::new(), Checker::new());
    for part in &parts {
        for bit in 0..part.bytes.len() * 8 {
            let mut bytes = part.bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let checked = checker.part(part.number, &bytes, drop);
            let read = unpacker.part(part.number, &bytes);
            assert_eq!(checked.is_ok(), read.is_ok(), "{bytes:?}");
        }
        unpacker.part(part.number, &part.bytes).unwrap();
        checker.part(part.number, &part.bytes, drop).unwrap();
    }
    let same = |row: &[u8]| {
        let mut found = Vec::new();
        let (read, checked) = (
            unpacker.doc(row),
            checker.doc(row, |number| found.push(number)),
        );
        assert_eq!(checked.is_ok(), read.is_ok(), "{row:?}");
        if checked.is_ok() {
            assert_eq!(found, numbers(row));
        }
        read
    };
    for row in &rows {
        assert!(same(row).is_ok());
        for len in 0..row.len() {
            assert!(same(&row[..len]).is_err());
        }
        for bit in 0..row.len() * 8 {
            let mut row = row.clone();
            row[bit / 8] ^= 1 << (bit % 8);
            // None may panic; what it reads is up to the checksum of the row.
            let _ = (same(&row), part_numbers(&row, drop));
        }
    }
    assert_eq!(same(&[tag::NULL, tag::NULL]), Err(UnpackError::Long));
    assert_eq!(same(&[tag::PART, 99]), Err(UnpackError::Part(99)));
    assert_eq!(same(&[tag::KEYS]), Err(UnpackError::Tag(tag::KEYS)));
    assert_eq!(same(&[tag::ARRAY, 0xff, 0x7f]), Err(UnpackError::Short));
    let deep = [[tag::ARRAY, 1]; 100_000].concat();
    assert_eq!(same(&deep), Err(UnpackError::Depth));
    let unsorted = [tag::OBJECT, 2, 1, b'b', 1, b'a', tag::NULL, tag::NULL];
    assert_eq!(same(&unsorted), Err(UnpackError::Keys));
}
