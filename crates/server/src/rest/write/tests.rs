use super::*;

/// The words of a variant: `CheckSize` is "check size".
fn words(step: Step) -> String {
    let mut words = String::new();
    for c in format!("{step:?}").chars() {
        if c.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
    }
    words
}

fn order() -> String {
    Step::ORDER.map(words).join(", ")
}

#[test]
fn architecture_documents_the_order_in_which_steps_are_taken() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once("The order of a write: ").unwrap();
    let (documented, _) = rest.split_once('.').unwrap();
    assert_eq!(
        documented,
        order(),
        "ARCHITECTURE.md and `Step::ORDER` differ"
    );
}

#[test]
fn order_lists_every_step_once() {
    // The variants are declared in this order, and the last one has the highest number.
    let numbers = Step::ORDER.map(|step| step as usize);
    assert!(numbers.iter().copied().eq(0..=Step::FollowUp as usize));
}

#[test]
fn every_write_stores_and_only_a_deletion_is_not_measured() {
    let parts = [
        Part::New,
        Part::First,
        Part::Main,
        Part::Status,
        Part::Finalize,
        Part::Whole,
        Part::Only(&[]),
        Part::Counted(&[]),
        Part::Deletion,
    ];
    for part in parts {
        assert!(part.takes(Step::Store), "{part:?}");
        assert_eq!(
            part.takes(Step::CheckSize),
            part != Part::Deletion,
            "{part:?}"
        );
        assert!(part.takes(Step::Validate), "{part:?}");
    }
}
