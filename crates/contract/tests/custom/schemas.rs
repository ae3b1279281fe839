//! Schemas that are refused, and in which words.

use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

use super::support::{DEFINITIONS, definition, own_group};

async fn refuse(t: &Scope, schema: Doc, errors: &[&str]) {
    let crd = definition(&own_group(t), "gizmos", "Gizmo", &Doc::NULL);
    let crd = crd.set("/spec/versions/0/schema/openAPIV3Schema", schema);
    let answer = t.create(&format!("{DEFINITIONS}?dryRun=All"), &crd).await;
    let errors: Vec<String> = errors
        .iter()
        .map(|error| error.replace("SCHEMA", "spec.validation.openAPIV3Schema"))
        .collect();
    let list = match errors.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let kind = "CustomResourceDefinition.apiextensions.k8s.io";
    let name = crd.str_at("/metadata/name");
    answer
        .fails(422, "Invalid")
        .says(&format!("{kind} \"{name}\" is invalid: {list}"));
}

/// The schema of an object with a spec.
fn root(spec: Doc) -> Doc {
    doc!({ "type": "object", "properties": { "spec": spec } })
}

/// The schema of an object with a field `a` in its spec.
fn field(a: Doc) -> Doc {
    root(doc!({ "type": "object", "properties": { "a": a } }))
}

/// The schema of an object whose spec has a rule.
fn rule(rule: Doc) -> Doc {
    root(doc!({ "type": "object", "x-kubernetes-validations": [rule] }))
}

/// Makes a case of each schema that is refused, with the errors.
macro_rules! refused {
    ($($name:ident: $schema:expr => [$($error:expr),+];)*) => {
        $(
            async fn $name(t: &Scope) {
                refuse(t, $schema, &[$($error),+]).await;
            }
        )*
        cases![$($name),*];
    };
}

refused! {
    field_without_a_type: field(doc!({})) =>
        ["SCHEMA.properties[spec].properties[a].type: Required value: must not be empty for specified object fields"];
    root_without_a_type: root(doc!({ "type": "object" })).cut("/type") =>
        ["SCHEMA.type: Required value: must not be empty at the root"];
    root_of_another_type: doc!({ "type": "array" }) => [
        "SCHEMA.items: Required value: must be specified",
        "SCHEMA.type: Invalid value: \"array\": must be object at the root"
    ];
    list_without_items: field(doc!({ "type": "array" })) =>
        ["SCHEMA.properties[spec].properties[a].items: Required value: must be specified"];
    unknown_type: field(doc!({ "type": "foo" })) => [
        "SCHEMA.properties[spec].properties[a].type: Unsupported value: \"foo\": supported values: \"array\", \"boolean\", \
         \"integer\", \"number\", \"object\", \"string\""
    ];
    broken_pattern: field(doc!({ "type": "string", "pattern": "[" })) => [
        "SCHEMA.properties[spec].properties[a].pattern: Invalid value: \"[\": must be a valid regular expression, but isn't: \
         error parsing regexp: missing closing ]: `[`"
    ];
    default_of_another_type: field(doc!({ "type": "string", "default": 5 })) =>
        ["SCHEMA.properties[spec].properties[a].default: Invalid value: \"integer\":  in body must be of type string: \"integer\""];
    default_with_unknown_fields: field(doc!({ "type": "object", "default": { "b": 1 } })) =>
        ["SCHEMA.properties[spec].properties[a].default: Invalid value: {\"b\":1}: must not have unknown fields"];
    default_against_the_choices: field(doc!({ "type": "string", "enum": ["x"], "default": "y" })) =>
        ["SCHEMA.properties[spec].properties[a].default: Unsupported value: \"y\": supported values: \"x\""];
    reference: field(doc!({ "$ref": "#/x" })) =>
        ["SCHEMA.properties[spec].properties[a].$ref: Forbidden: $ref is not supported"];
    properties_and_values: field(doc!({
        "type": "object", "properties": { "x": { "type": "string" } }, "additionalProperties": { "type": "string" }
    })) => [
        "SCHEMA.properties[spec].properties[a].additionalProperties: Forbidden: additionalProperties and properties are \
         mutual exclusive"
    ];
    unique_items: field(doc!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true })) => [
        "SCHEMA.properties[spec].properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime \
         complexity becomes quadratic"
    ];
    keyed_list_without_keys: field(doc!({
        "type": "array", "items": { "type": "object" }, "x-kubernetes-list-type": "map"
    })) => [
        "SCHEMA.properties[spec].properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if \
         x-kubernetes-list-type is map"
    ];
    key_that_may_be_absent: field(doc!({
        "type": "array", "items": { "type": "object", "properties": { "k": { "type": "string" } } },
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]
    })) => [
        "SCHEMA.properties[spec].properties[a].items.properties[k].default: Required value: this property is in \
         x-kubernetes-list-map-keys, so it must have a default or be a required property"
    ];
    set_of_objects: field(doc!({ "type": "array", "items": { "type": "object" }, "x-kubernetes-list-type": "set" })) => [
        "SCHEMA.properties[spec].properties[a].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a \
         list with x-kubernetes-list-type=set"
    ];
    unknown_list_type: field(doc!({ "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "foo" })) => [
        "SCHEMA.properties[spec].properties[a].x-kubernetes-list-type: Unsupported value: \"foo\": supported values: \
         \"atomic\", \"set\", \"map\""
    ];
    type_in_a_nested_schema: root(doc!({ "type": "object", "allOf": [{ "type": "object" }] })) =>
        ["SCHEMA.properties[spec].allOf[0].type: Forbidden: must be empty to be structural"];
    metadata_beyond_the_name: root(doc!({ "type": "object" })).set("/properties/metadata", doc!({
        "type": "object", "properties": { "labels": { "type": "object" } }
    })) => [
        "SCHEMA.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is \
         implicitly specified"
    ];
    nullable_root: root(doc!({ "type": "object" })).set("/nullable", true) =>
        ["SCHEMA.nullable: Forbidden: nullable cannot be true at the root"];
    inner_object_without_fields: root(doc!({ "type": "object", "x-kubernetes-embedded-resource": true })) => [
        "SCHEMA.properties[spec].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true \
         without x-kubernetes-preserve-unknown-fields"
    ];
    rule_with_an_unknown_field: rule(doc!({ "rule": "self.foo > 1" })) => [
        "SCHEMA.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self.foo \\u003e \
         1\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: \
         compilation failed: ERROR: <input>:1:5: undefined field 'foo'\n | self.foo > 1\n | ....^"
    ];
    rule_that_is_no_bool: rule(doc!({ "rule": "1" })) => [
        "SCHEMA.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"1\",\"Message\":\"\",\
         \"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: cel expression must \
         evaluate to a bool"
    ];
    empty_rule: rule(doc!({ "rule": "" })) =>
        ["SCHEMA.properties[spec].x-kubernetes-validations[0].rule: Required value: rule is not specified"];
    message_with_line_breaks: rule(doc!({ "rule": "true", "message": "a\nb" })) => [
        "SCHEMA.properties[spec].x-kubernetes-validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks"
    ];
    rule_with_a_syntax_error: rule(doc!({ "rule": "self >" })) => [
        "SCHEMA.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self \
         \\u003e\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: \
         compilation failed: ERROR: <input>:1:7: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', \
         '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | self >\n | ......^"
    ];
    unknown_reason: rule(doc!({ "rule": "true", "reason": "Foo" })) => [
        "SCHEMA.properties[spec].x-kubernetes-validations[0].reason: Unsupported value: \"Foo\": supported values: \
         \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\""
    ];
    field_path_that_leads_nowhere: rule(doc!({ "rule": "true", "fieldPath": ".zz" })) =>
        ["SCHEMA.properties[spec].x-kubernetes-validations[0].fieldPath: Invalid value: \".zz\": must be a valid path"];
    optional_old_self_unused: rule(doc!({ "rule": "true", "optionalOldSelf": true })) => [
        "SCHEMA.properties[spec].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf \
         is not used in rule"
    ];
    message_expression_that_is_no_text: rule(doc!({ "rule": "true", "messageExpression": "1" })) => [
        "SCHEMA.properties[spec].x-kubernetes-validations[0].messageExpression: Invalid value: {\"Rule\":\"true\",\
         \"Message\":\"\",\"MessageExpression\":\"1\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: \
         messageExpression must evaluate to a string"
    ];
    rule_that_costs_too_much: root(doc!({
        "type": "object", "properties": { "l": { "type": "array", "items": { "type": "string" } } },
        "x-kubernetes-validations": [{ "rule": "self.l.all(x, self.l.all(y, x == y))" }]
    })) => [
        "SCHEMA.properties[spec].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of \
         more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and \
         strings are declared)",
        "SCHEMA.properties[spec].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total \
         exceeding cost limit for entire OpenAPIv3 schema",
        "SCHEMA: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by \
         factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, \
         maps, and strings are declared)"
    ];
    transition_rule_on_items_without_keys: root(doc!({
        "type": "object", "properties": { "l": {
            "type": "array", "maxItems": 5, "items": {
                "type": "string", "maxLength": 5, "x-kubernetes-validations": [{ "rule": "self == oldSelf" }]
            }
        } }
    })) => [
        "SCHEMA.properties[spec].properties[l].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": \
         oldSelf cannot be used on the uncorrelatable portion of the schema within \
         SCHEMA.properties[spec].properties[l]"
    ];
}
