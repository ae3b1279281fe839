//! Replays the JSON texts that must be refused, each with what its error says.

use windlass_core::Doc;

/// One line of the file: how the input is written, the input, and the expected message.
fn case(line: &str) -> (Vec<u8>, &str) {
    let (input, message) = line.split_once(" => ").expect("an arrow");
    let bytes = match input
        .split_once(' ')
        .expect("a line starts with how it is written")
    {
        ("text", text) => text.as_bytes().to_vec(),
        ("hex", digits) => digits.split(' ').map(byte).collect(),
        (other, _) => panic!("unknown way of writing {other:?}"),
    };
    (bytes, message)
}

fn byte(digits: &str) -> u8 {
    u8::from_str_radix(digits, 16).expect("two hex digits")
}

#[test]
fn bad_json_is_refused() {
    let lines = include_str!("bad_inputs/json.txt").lines();
    let cases: Vec<_> = lines
        .filter(|line| !line.starts_with('#'))
        .map(case)
        .collect();
    assert!(cases.len() > 40, "the file has lost its cases");
    for (input, message) in cases {
        let error = Doc::parse(&input).expect_err("refused");
        assert_eq!(
            error.to_string(),
            message,
            "{:?}",
            String::from_utf8_lossy(&input)
        );
    }
}

#[test]
fn no_text_at_all_is_refused() {
    let error = Doc::parse(b"").expect_err("refused");
    assert_eq!(
        error.to_string(),
        "invalid JSON at line 1, column 1: unexpected end of text"
    );
}
