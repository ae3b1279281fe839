//! The success policy: rules by which an Indexed Job has succeeded before all indexes have.

use windlass_core::Doc;

use super::indexes::Indexes;

/// The message of the first rule that is met.
pub(super) fn match_success(
    policy: &Doc,
    completions: usize,
    succeeded: &Indexes,
) -> Option<String> {
    if succeeded.is_empty() {
        return None;
    }
    let mut rules = policy.at("/rules").items().iter();
    let index = rules.position(|rule| is_met(rule, completions, succeeded))?;
    Some(format!("Matched rules at index {index}"))
}

fn is_met(rule: &Doc, completions: usize, succeeded: &Indexes) -> bool {
    let count = rule.at("/succeededCount").as_u64();
    let count = count.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    let Some(wanted) = rule.at("/succeededIndexes").as_str() else {
        return count.is_some_and(|count| succeeded.len() >= count);
    };
    let wanted = Indexes::parse(wanted, completions);
    let found = wanted.common(succeeded);
    !wanted.is_empty() && (found == wanted.len() || count.is_some_and(|count| found >= count))
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[test]
    fn counts_and_indexes_are_compared() {
        let count = doc!({ "succeededCount": 2 });
        let indexes = doc!({ "succeededIndexes": "0-2" });
        let both = doc!({ "succeededIndexes": "0-2", "succeededCount": 2 });
        let beyond = doc!({ "succeededIndexes": "10" });
        for (rule, succeeded, is_met) in [
            (&count, &[][..], false),
            (&count, &[4], false),
            (&count, &[4, 5], true),
            (&indexes, &[0, 1, 4], false),
            (&indexes, &[0, 1, 2], true),
            (&both, &[0, 4], false),
            (&both, &[0, 2], true),
            (&beyond, &[0], false),
        ] {
            let succeeded: Indexes = succeeded.iter().copied().collect();
            let policy = doc!({ "rules": [{ "succeededCount": 9 }, rule] });
            let text = match_success(&policy, 6, &succeeded);
            assert_eq!(text.is_some(), is_met, "{rule} {succeeded}");
            assert!(text.is_none_or(|text| text == "Matched rules at index 1"));
        }
    }
}
