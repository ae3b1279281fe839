//! Values that the schema of a custom resource refuses, and in which words.

use windlass_contract::{Scope, cases};
use windlass_core::doc;

use super::support::{UNCHECKED, demand, widget, widget_path};

/// Makes a case of each spec that is refused, with the errors.
macro_rules! refused {
    ($($name:ident: $spec:tt => [$($error:expr),+];)*) => {
        $(
            async fn $name(t: &Scope) {
                let path = widget_path(t).await;
                let answer = t.create(&path, &widget("a", &doc!($spec))).await;
                demand(answer.fails(422, "Invalid"), &[$($error),+]);
            }
        )*
        cases![$($name),*];
    };
}

refused! {
    value_outside_of_the_choices: { "color": "green" } =>
        ["spec.color: Unsupported value: \"green\": supported values: \"red\", \"blue\", \"black\"", UNCHECKED];
    missing_required_field: {} => ["spec.color: Required value", UNCHECKED];
    null_is_a_missing_field: { "color": null } => ["spec.color: Required value", UNCHECKED];
    number_above_the_maximum: { "color": "red", "replicas": 11 } =>
        ["spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10"];
    number_below_the_minimum: { "color": "red", "replicas": (-1) } => [
        "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0",
        ".spec.replicas: Invalid value: -1: should be a non-negative integer"
    ];
    text_in_place_of_a_number: { "color": "red", "max": "x" } => [
        "spec.max: Invalid value: \"string\": spec.max in body must be of type integer: \"string\"",
        UNCHECKED
    ];
    fraction_in_place_of_an_integer: { "color": "red", "max": 1.5 } => [
        "spec.max: Invalid value: \"number\": spec.max in body must be of type integer: \"number\"",
        "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in spec.max",
        UNCHECKED
    ];
    scale_path_with_a_text: { "color": "red", "replicas": "x" } => [
        "spec.replicas: Invalid value: \"string\": spec.replicas in body must be of type integer: \"string\"",
        ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected int64",
        UNCHECKED
    ];
    exclusive_maximum: { "color": "red", "between": 5 } =>
        ["spec.between: Invalid value: 5: spec.between in body should be less than 5"];
    exclusive_minimum: { "color": "red", "between": 1 } =>
        ["spec.between: Invalid value: 1: spec.between in body should be greater than 1"];
    not_a_multiple: { "color": "red", "num": 0.7 } =>
        ["spec.num: Invalid value: 0.7: spec.num in body should be a multiple of 0.5"];
    text_too_long: { "color": "red", "name": "abcdefg" } =>
        ["spec.name: Too long: may not be more than 5 bytes", UNCHECKED];
    text_too_short: { "color": "red", "name": "a" } =>
        ["spec.name: Invalid value: \"a\": spec.name in body should be at least 2 chars long"];
    text_against_the_pattern: { "color": "red", "name": "ABC" } =>
        ["spec.name: Invalid value: \"ABC\": spec.name in body should match '^[a-z]+$'"];
    number_in_place_of_a_text: { "color": "red", "name": 5 } => [
        "spec.name: Invalid value: \"integer\": spec.name in body must be of type string: \"integer\"",
        UNCHECKED
    ];
    text_in_place_of_a_flag: { "color": "red", "flag": "x" } => [
        "spec.flag: Invalid value: \"string\": spec.flag in body must be of type boolean: \"string\"",
        UNCHECKED
    ];
    text_in_place_of_a_list: { "color": "red", "tags": "a" } => [
        "spec.tags: Invalid value: \"string\": spec.tags in body must be of type array: \"string\"",
        UNCHECKED
    ];
    number_in_a_list_of_texts: { "color": "red", "tags": [1] } => [
        "spec.tags[0]: Invalid value: \"integer\": spec.tags[0] in body must be of type string: \"integer\"",
        UNCHECKED
    ];
    null_in_a_list_of_texts: { "color": "red", "tags": [null] } => [
        "spec.tags[0]: Invalid value: \"null\": spec.tags[0] in body must be of type string: \"null\"",
        UNCHECKED
    ];
    text_in_a_map_of_numbers: { "color": "red", "counts": { "a": "x" } } => [
        "spec.counts.a: Invalid value: \"string\": spec.counts.a in body must be of type integer: \"string\"",
        UNCHECKED
    ];
    number_in_place_of_the_spec_of_a_port: { "color": "red", "ports": [5] } => [
        "spec.ports[0]: Invalid value: \"integer\": spec.ports[0] in body must be of type object: \"integer\"",
        "spec.ports[0]: Invalid value: 5: must be an object for an array of list-type map",
        UNCHECKED
    ];
    not_a_time: { "color": "red", "when": "x" } => [
        "spec.when: Invalid value: \"x\": spec.when in body must be of type date-time: \"x\"",
        UNCHECKED
    ];
    not_a_date: { "color": "red", "day": "2026-13-01" } => [
        "spec.day: Invalid value: \"2026-13-01\": spec.day in body must be of type date: \"2026-13-01\"",
        UNCHECKED
    ];
    not_a_duration: { "color": "red", "wait": "x" } => [
        "spec.wait: Invalid value: \"x\": spec.wait in body must be of type duration: \"x\"",
        UNCHECKED
    ];
    not_an_address: { "color": "red", "ip": "1.2.3" } => [
        "spec.ip: Invalid value: \"1.2.3\": spec.ip in body must be of type ipv4: \"1.2.3\"",
        UNCHECKED
    ];
    not_a_long_address: { "color": "red", "ip6": "1.2.3.4" } => [
        "spec.ip6: Invalid value: \"1.2.3.4\": spec.ip6 in body must be of type ipv6: \"1.2.3.4\"",
        UNCHECKED
    ];
    not_a_network: { "color": "red", "net": "10.0.0.0" } => [
        "spec.net: Invalid value: \"10.0.0.0\": spec.net in body must be of type cidr: \"10.0.0.0\"",
        UNCHECKED
    ];
    not_a_mail_address: { "color": "red", "mail": "x" } => [
        "spec.mail: Invalid value: \"x\": spec.mail in body must be of type email: \"x\"",
        UNCHECKED
    ];
    not_a_host: { "color": "red", "host": "a b" } => [
        "spec.host: Invalid value: \"a b\": spec.host in body must be of type hostname: \"a b\"",
        UNCHECKED
    ];
    not_a_uri: { "color": "red", "uri": "x y" } => [
        "spec.uri: Invalid value: \"x y\": spec.uri in body must be of type uri: \"x y\"",
        UNCHECKED
    ];
    not_a_uuid: { "color": "red", "id": "x" } => [
        "spec.id: Invalid value: \"x\": spec.id in body must be of type uuid: \"x\"",
        UNCHECKED
    ];
    not_base64: { "color": "red", "blob": "x" } => [
        "spec.blob: Invalid value: \"x\": spec.blob in body must be of type byte: \"x\"",
        UNCHECKED
    ];
    too_many_items: { "color": "red", "tags": ["a", "b", "c", "d"] } =>
        ["spec.tags: Too many: 4: must have at most 3 items", UNCHECKED];
    too_few_items: { "color": "red", "tags": [] } =>
        ["spec.tags: Invalid value: 0: spec.tags in body should have at least 1 items"];
    repeated_item_of_a_set: { "color": "red", "tags": ["a", "b", "a"] } =>
        ["spec.tags[2]: Duplicate value: \"a\""];
    repeated_key_of_a_list: { "color": "red", "ports": [{ "name": "a" }, { "name": "a", "port": 5 }] } =>
        ["spec.ports[1]: Duplicate value: {\"name\":\"a\"}"];
    missing_key_of_an_item: { "color": "red", "ports": [{ "port": 1 }] } =>
        ["spec.ports[0].name: Required value", UNCHECKED];
    too_many_entries: { "color": "red", "counts": { "a": 1, "b": 2, "c": 3 } } =>
        ["spec.counts: Too many: 3: must have at most 2 items", UNCHECKED];
    too_few_entries: { "color": "red", "counts": {} } =>
        ["spec.counts: Invalid value: 0: spec.counts in body should have at least 1 properties"];
    flag_in_place_of_an_int_or_string: { "color": "red", "amount": true } => [
        "spec.amount: Invalid value: \"boolean\": spec.amount in body must be of type integer,string: \"boolean\"",
        UNCHECKED
    ];
    none_of_exactly_one: { "color": "red", "one": {} } => [
        "<nil>: Invalid value: \"\": \"spec.one\" must validate one and only one schema (oneOf). Found none valid",
        "spec.one.a: Required value",
        UNCHECKED
    ];
    two_of_exactly_one: { "color": "red", "one": { "a": "1", "b": "2" } } => [
        "<nil>: Invalid value: \"\": \"spec.one\" must validate one and only one schema (oneOf). Found 2 valid alternatives"
    ];
    none_of_at_least_one: { "color": "red", "some": {} } => [
        "<nil>: Invalid value: \"\": \"spec.some\" must validate at least one schema (anyOf)",
        "spec.some.a: Required value",
        UNCHECKED
    ];
    what_must_not_be: { "color": "red", "none": { "a": "1" } } =>
        ["<nil>: Invalid value: \"\": \"spec.none\" must not validate the schema (not)"];
    not_all_of_all: { "color": "red", "every": { "a": 1 } } => [
        "spec.every.a: Invalid value: 1: spec.every.a in body should be greater than or equal to 5",
        "<nil>: Invalid value: \"\": \"spec.every\" must validate all the schemas (allOf). None validated"
    ];
    inner_object_without_a_type: { "color": "red", "inner": { "a": 1 } } => [
        "spec.inner.apiVersion: Required value",
        "spec.inner.kind: Required value",
        UNCHECKED
    ];
}
