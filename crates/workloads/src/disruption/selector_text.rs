//! Label selectors as Go prints them, which is part of the text of an event.

use windlass_core::LabelSelector;

/// The text of a selector.
pub(super) fn of(selector: &LabelSelector) -> String {
    let mut labels: Vec<_> = selector.match_labels.iter().collect();
    labels.sort();
    let labels = labels
        .iter()
        .map(|(key, value)| format!("{key}: {value},"))
        .collect::<String>();
    let expressions = selector.match_expressions.iter().map(|one| {
        let values = one.values.join(" ");
        let (key, operator) = (&one.key, &one.operator);
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
    });
    let expressions = expressions.collect::<String>();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
