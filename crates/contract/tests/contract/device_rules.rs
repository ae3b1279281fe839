//! What claims, templates, classes and slices may say.

use http::Method;
use windlass_contract::{Answer, Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    claim_defaults_are_filled_in,
    claim_without_requests_is_taken,
    too_many_requests_are_counted_and_not_looked_at,
    request_needs_a_name_and_a_class,
    request_mode_and_count_agree,
    selector_needs_an_expression,
    expression_is_compiled,
    expression_must_be_a_question,
    expression_has_a_cost_limit,
    constraint_names_existing_requests,
    constraint_attribute_needs_a_domain,
    constraint_says_something,
    config_is_for_a_driver,
    alternatives_are_few_and_named_once,
    claim_spec_cannot_change,
    allocation_names_existing_requests,
    allocation_has_a_limit,
    allocation_can_be_empty,
    reservation_comes_with_the_allocation,
    reservations_have_a_limit,
    reservations_are_complete_and_unique,
    a_deleted_claim_takes_no_new_consumer,
    device_status_is_about_allocated_devices,
    device_status_goes_with_the_allocation,
    a_reservation_can_be_taken_out_by_uid,
    admin_access_needs_a_labelled_namespace,
    admin_access_is_given_in_a_labelled_namespace_only,
    template_metadata_is_kept,
    class_selectors_are_checked,
    class_generation_follows_its_spec,
    slice_place_is_one_and_true,
    slice_pool_is_checked,
    slice_pool_name_is_immutable,
    slice_devices_are_few,
    slice_attributes_are_few_and_of_one_kind,
    slice_attribute_values_are_checked,
    slice_taints_are_checked_and_dated,
    slice_binding_conditions_come_in_pairs,
    slice_driver_should_be_lower_case,
    claim_state_is_shown,
    pod_claims_have_one_source,
    container_claims_are_those_of_the_pod,
    counter_sets_have_names_and_counters,
    the_metadata_of_a_claim_template_is_checked,
    statuses_of_claims_are_those_of_the_pod,
];

const DRIVER: &str = "gpu.example.com";

fn claim_of(devices: Doc) -> Doc {
    doc!({ "metadata": { "name": "c" }, "spec": { "devices": devices } })
}

fn claim(exactly: Doc) -> Doc {
    claim_of(doc!({ "requests": [{ "name": "gpu", "exactly": exactly }] }))
}

fn simple() -> Doc {
    claim(doc!({ "deviceClassName": DRIVER }))
}

fn cel(expression: &str) -> Doc {
    doc!([{ "cel": { "expression": expression } }])
}

fn result(request: &str, device: &str) -> Doc {
    doc!({ "request": request, "driver": DRIVER, "pool": "n", "device": device })
}

fn allocation(results: Vec<Doc>) -> Doc {
    doc!({ "devices": { "results": results } })
}

fn consumer(at: usize) -> Doc {
    doc!({ "resource": "pods", "name": (format!("p{at}")), "uid": (format!("u{at}")) })
}

async fn create(t: &Scope, claim: &Doc) -> Answer {
    t.create("resourceclaims", claim).await
}

async fn status(t: &Scope, status: Doc) -> Answer {
    t.merge("resourceclaims/c/status", &doc!({ "status": status }))
        .await
}

/// A claim with one device.
async fn allocated(t: &Scope) {
    t.made("resourceclaims", &simple()).await;
    let devices = allocation(vec![result("gpu", "d0")]);
    status(t, doc!({ "allocation": devices })).await.is(200);
}

fn slice(t: &Scope, devices: Vec<Doc>) -> Doc {
    doc!({
        "metadata": { "name": (t.unique("r")) },
        "spec": {
            "driver": DRIVER, "nodeName": (t.namespace()),
            "pool": { "name": "n", "generation": 1, "resourceSliceCount": 1 },
            "devices": devices
        }
    })
}

async fn claim_defaults_are_filled_in(t: &Scope) {
    let list = doc!({ "name": "b", "firstAvailable": [
        { "name": "s", "deviceClassName": "x" },
        { "name": "all", "deviceClassName": "x", "allocationMode": "All" }
    ] });
    let object = simple().set("/spec/devices/requests/-", list);
    let made = t.made("resourceclaims", &object).await;
    let requests = made.at("/spec/devices/requests");
    assert_eq!(requests.at("/0/exactly/allocationMode"), "ExactCount");
    assert_eq!(*requests.at("/0/exactly/count"), 1);
    assert_eq!(*requests.at("/1/firstAvailable/0/count"), 1);
    assert!(requests.at("/1/firstAvailable/1/count").is_null());
}

async fn claim_without_requests_is_taken(t: &Scope) {
    create(t, &claim_of(doc!({}))).await.is(201);
}

async fn too_many_requests_are_counted_and_not_looked_at(t: &Scope) {
    let requests: Vec<Doc> = (0..33).map(|_| doc!({ "name": "" })).collect();
    let refusal = create(t, &claim_of(doc!({ "requests": requests }))).await;
    let refusal = refusal.fails(422, "Invalid");
    let refusal = refusal.because("FieldValueTooMany", "spec.devices.requests");
    assert_eq!(refusal.causes().len(), 1);
}

async fn request_needs_a_name_and_a_class(t: &Scope) {
    let refusal = create(t, &claim(doc!({}))).await.fails(422, "Invalid");
    let field = "spec.devices.requests[0].exactly.deviceClassName";
    refusal.because("FieldValueRequired", field);
    let refusal = create(t, &simple().set("/spec/devices/requests/0/name", "A b")).await;
    let field = "spec.devices.requests[0].name";
    refusal
        .fails(422, "Invalid")
        .because("FieldValueInvalid", field);
}

async fn request_mode_and_count_agree(t: &Scope) {
    let field = "spec.devices.requests[0].exactly.count";
    let object = claim(doc!({ "deviceClassName": "x", "allocationMode": "All", "count": 1 }));
    let refusal = create(t, &object).await.fails(422, "Invalid");
    refusal
        .because("FieldValueInvalid", field)
        .mentions("must not be specified when allocationMode is 'All'");
    let object = claim(doc!({ "deviceClassName": "x", "count": (-1) }));
    let refusal = create(t, &object).await.fails(422, "Invalid");
    refusal
        .because("FieldValueInvalid", field)
        .mentions("must be greater than zero");
    let object = claim(doc!({ "deviceClassName": "x", "allocationMode": "Some" }));
    let refusal = create(t, &object).await.fails(422, "Invalid");
    let field = "spec.devices.requests[0].exactly.allocationMode";
    refusal.because("FieldValueNotSupported", field);
}

async fn selector_needs_an_expression(t: &Scope) {
    let object = claim(doc!({ "deviceClassName": "x", "selectors": [{}] }));
    let refusal = create(t, &object).await.fails(422, "Invalid");
    let field = "spec.devices.requests[0].exactly.selectors[0].cel";
    refusal.because("FieldValueRequired", field);
}

const EXPRESSION: &str = "spec.devices.requests[0].exactly.selectors[0].cel.expression";

fn selecting(expression: &str) -> Doc {
    claim(doc!({ "deviceClassName": "x", "selectors": (cel(expression)) }))
}

async fn expression_is_compiled(t: &Scope) {
    for (expression, problem) in [
        ("device.", "compilation failed"),
        ("bogus == 1", "undeclared reference to 'bogus'"),
        ("device.bogus", "undefined field 'bogus'"),
    ] {
        let refusal = create(t, &selecting(expression))
            .await
            .fails(422, "Invalid");
        refusal
            .because("FieldValueInvalid", EXPRESSION)
            .mentions(problem);
    }
    let text = "cel.bind(d, device.attributes['gpu.example.com'], has(d.model) && d.model == 'x')";
    create(t, &selecting(text)).await.is(201);
}

async fn expression_must_be_a_question(t: &Scope) {
    let refusal = create(t, &selecting("1")).await.fails(422, "Invalid");
    refusal
        .because("FieldValueInvalid", EXPRESSION)
        .mentions("must evaluate to bool or the unknown type, not int");
    create(t, &selecting("device.attributes['a'].b"))
        .await
        .is(201);
}

async fn expression_has_a_cost_limit(t: &Scope) {
    let list = "[0,1,2,3,4,5,6,7,8,9]";
    let mut text = "true".to_owned();
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        text = format!("{list}.all({name}, {text})");
    }
    let refusal = create(t, &selecting(&text)).await.fails(422, "Invalid");
    refusal
        .because("FieldValueForbidden", EXPRESSION)
        .mentions("too complex, exceeds cost limit");
}

fn constrained(constraint: Doc) -> Doc {
    let list = doc!({ "name": "list", "firstAvailable": [
        { "name": "s", "deviceClassName": "x" }
    ] });
    simple()
        .set("/spec/devices/requests/-", list)
        .set("/spec/devices/constraints", doc!([constraint]))
}

async fn constraint_names_existing_requests(t: &Scope) {
    let of = |name: &str| constrained(doc!({ "requests": [name], "matchAttribute": "a.b/c" }));
    let field = "spec.devices.constraints[0].requests[0]";
    for wrong in ["other", "list/other", "gpu/s", "list/s/x"] {
        let refusal = create(t, &of(wrong)).await.fails(422, "Invalid");
        refusal.because("FieldValueInvalid", field);
    }
    create(t, &of("list/s")).await.is(201);
}

async fn constraint_attribute_needs_a_domain(t: &Scope) {
    let refusal = create(t, &constrained(doc!({ "matchAttribute": "numa" }))).await;
    let field = "spec.devices.constraints[0].matchAttribute";
    refusal
        .fails(422, "Invalid")
        .because("FieldValueInvalid", field);
}

async fn constraint_says_something(t: &Scope) {
    let refusal = create(t, &constrained(doc!({})))
        .await
        .fails(422, "Invalid");
    assert_eq!(refusal.causes()[0].str_at("/reason"), "FieldValueRequired");
}

async fn config_is_for_a_driver(t: &Scope) {
    let with = |config: Doc| simple().set("/spec/devices/config", doc!([config]));
    let path = "spec.devices.config[0].opaque";
    let refusal = create(t, &with(doc!({}))).await.fails(422, "Invalid");
    refusal.because("FieldValueRequired", path);
    let refusal = create(t, &with(doc!({ "opaque": { "parameters": {} } }))).await;
    let refusal = refusal.fails(422, "Invalid");
    refusal.because("FieldValueRequired", &format!("{path}.driver"));
    let opaque =
        |parameters: Doc| with(doc!({ "opaque": { "driver": DRIVER, "parameters": parameters } }));
    let field = format!("{path}.parameters");
    let refusal = create(t, &opaque(Doc::NULL)).await.fails(422, "Invalid");
    refusal.because("FieldValueRequired", &field);
    let refusal = create(t, &opaque(doc!([1]))).await.fails(422, "Invalid");
    refusal.because("FieldValueInvalid", &field);
    let refusal = create(t, &opaque(doc!({ "a": ("x".repeat(10 * 1024)) }))).await;
    refusal
        .fails(422, "Invalid")
        .because("FieldValueTooLong", &field);
    create(t, &opaque(doc!({ "a": 1 }))).await.is(201);
}

async fn alternatives_are_few_and_named_once(t: &Scope) {
    let sub = |name: &str| doc!({ "name": name, "deviceClassName": "x" });
    let with = |subs: Vec<Doc>| {
        claim_of(doc!({ "requests": [
        { "name": "r", "firstAvailable": subs }
    ] }))
    };
    let field = "spec.devices.requests[0].firstAvailable";
    let nine = (0..9).map(|at| sub(&format!("s{at}"))).collect();
    let refusal = create(t, &with(nine)).await.fails(422, "Invalid");
    refusal.because("FieldValueTooMany", field);
    let refusal = create(t, &with(vec![sub("a"), sub("a")]))
        .await
        .fails(422, "Invalid");
    refusal.because("FieldValueDuplicate", &format!("{field}[1]"));
}

async fn claim_spec_cannot_change(t: &Scope) {
    let made = t.made("resourceclaims", &simple()).await;
    let changed = made.set("/spec/devices/requests/0/name", "other");
    let refusal = t
        .update("resourceclaims/c", &changed)
        .await
        .fails(422, "Invalid");
    refusal
        .because("FieldValueInvalid", "spec")
        .mentions("field is immutable");
    let labelled = made.set("/metadata/labels", doc!({ "a": "b" }));
    t.update("resourceclaims/c", &labelled).await.is(200);
}

async fn allocation_names_existing_requests(t: &Scope) {
    t.made("resourceclaims", &simple()).await;
    let devices = allocation(vec![result("other", "d0")]);
    let refusal = status(t, doc!({ "allocation": devices }))
        .await
        .fails(422, "Invalid");
    let field = "status.allocation.devices.results[0].request";
    refusal.because("FieldValueInvalid", field);
    let devices = allocation(vec![doc!({ "request": "gpu" })]);
    let refusal = status(t, doc!({ "allocation": devices }))
        .await
        .fails(422, "Invalid");
    let path = "status.allocation.devices.results[0]";
    refusal
        .because("FieldValueRequired", &format!("{path}.driver"))
        .because("FieldValueRequired", &format!("{path}.pool"))
        .because("FieldValueInvalid", &format!("{path}.device"));
}

async fn allocation_has_a_limit(t: &Scope) {
    t.made("resourceclaims", &simple()).await;
    let results = |count: usize| {
        let results = (0..count).map(|at| result("gpu", &format!("d{at}")));
        doc!({ "allocation": (allocation(results.collect())) })
    };
    let refusal = status(t, results(33)).await.fails(422, "Invalid");
    refusal.because("FieldValueTooMany", "status.allocation.devices.results");
    status(t, results(32)).await.is(200);
}

async fn allocation_can_be_empty(t: &Scope) {
    t.made("resourceclaims", &simple()).await;
    status(t, doc!({ "allocation": {} })).await.is(200);
}

async fn reservation_comes_with_the_allocation(t: &Scope) {
    t.made("resourceclaims", &simple()).await;
    let devices = allocation(vec![result("gpu", "d0")]);
    let both = doc!({ "allocation": devices, "reservedFor": [(consumer(0))] });
    let stored = status(t, both).await.is(200);
    assert_eq!(stored.at("/status/reservedFor").items().len(), 1);
}

async fn reservations_have_a_limit(t: &Scope) {
    allocated(t).await;
    let many = |count: usize| {
        let consumers: Vec<Doc> = (0..count).map(consumer).collect();
        doc!({ "reservedFor": consumers })
    };
    let refusal = status(t, many(257)).await.fails(422, "Invalid");
    refusal.because("FieldValueTooMany", "status.reservedFor");
    status(t, many(256)).await.is(200);
}

async fn reservations_are_complete_and_unique(t: &Scope) {
    allocated(t).await;
    let refusal = status(t, doc!({ "reservedFor": [{ "uid": "u" }] })).await;
    refusal
        .fails(422, "Invalid")
        .because("FieldValueRequired", "status.reservedFor[0].resource")
        .because("FieldValueRequired", "status.reservedFor[0].name");
    let twice = doc!({ "reservedFor": [(consumer(0)), (consumer(0))] });
    let refusal = status(t, twice).await.fails(422, "Invalid");
    assert_eq!(refusal.causes()[0].str_at("/reason"), "FieldValueDuplicate");
}

async fn a_deleted_claim_takes_no_new_consumer(t: &Scope) {
    let held = simple().set("/metadata/finalizers", doc!(["example.com/hold"]));
    t.made("resourceclaims", &held).await;
    let devices = allocation(vec![result("gpu", "d0")]);
    let both = doc!({ "allocation": devices, "reservedFor": [(consumer(0)), (consumer(1))] });
    status(t, both).await.is(200);
    t.delete("resourceclaims/c").await.is(200);
    let more = doc!({ "reservedFor": [(consumer(0)), (consumer(2))] });
    let refusal = status(t, more).await.fails(422, "Invalid");
    refusal
        .because("FieldValueForbidden", "status.reservedFor")
        .mentions("new entries may not be added while `deallocationRequested`");
    status(t, doc!({ "reservedFor": [(consumer(1))] }))
        .await
        .is(200);
    t.merge(
        "resourceclaims/c",
        &doc!({ "metadata": { "finalizers": null } }),
    )
    .await
    .is(200);
}

fn reported(device: &str) -> Doc {
    doc!([{ "driver": DRIVER, "pool": "n", "device": device }])
}

async fn device_status_is_about_allocated_devices(t: &Scope) {
    allocated(t).await;
    let refusal = status(t, doc!({ "devices": (reported("d1")) })).await;
    refusal
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "status.devices[0]")
        .mentions("must be an allocated device in the claim");
    status(t, doc!({ "devices": (reported("d0")) }))
        .await
        .is(200);
}

async fn device_status_goes_with_the_allocation(t: &Scope) {
    allocated(t).await;
    status(t, doc!({ "devices": (reported("d0")) }))
        .await
        .is(200);
    let freed = status(t, doc!({ "allocation": null })).await.is(200);
    assert!(freed.at("/status/devices").is_null(), "{freed:?}");
}

async fn strategic(t: &Scope, patch: &Doc) -> Answer {
    let request = t.request(Method::PATCH, "resourceclaims/c/status");
    let media_type = "application/strategic-merge-patch+json";
    t.send(request.body(media_type, patch.to_json())).await
}

async fn a_reservation_can_be_taken_out_by_uid(t: &Scope) {
    allocated(t).await;
    let two = doc!({ "reservedFor": [(consumer(0)), (consumer(1))] });
    let claim = status(t, two).await.is(200);
    let patch = |uid: &str| {
        doc!({
            "metadata": { "uid": uid },
            "status": { "reservedFor": [{ "$patch": "delete", "uid": "u0" }] }
        })
    };
    let other = strategic(t, &patch("another")).await;
    other
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "metadata.uid");
    let patch = patch(claim.meta().uid_str());
    let left = strategic(t, &patch).await.is(200);
    assert_eq!(left.at("/status/reservedFor").items(), [consumer(1)]);
}

async fn admin_access_needs_a_labelled_namespace(t: &Scope) {
    let admin = claim(doc!({ "deviceClassName": "x", "adminAccess": true }));
    let template = doc!({ "metadata": { "name": "t" }, "spec": { "spec": (admin.at("/spec")) } });
    let text = "admin access to devices requires the `resource.kubernetes.io/admin-access: true` \
                label on the containing namespace";
    let field = "spec.devices.requests[0].adminAccess";
    let refusal = create(t, &admin).await.fails(422, "Invalid");
    refusal.because("FieldValueForbidden", field).mentions(text);
    let refusal = t.create("resourceclaimtemplates", &template).await;
    refusal.fails(422, "Invalid").mentions(text);
    let namespace = format!("/api/v1/namespaces/{}", t.namespace());
    let label = |value: &str| {
        doc!({ "metadata": { "labels": {
        "resource.kubernetes.io/admin-access": value
    } } })
    };
    t.merge(&namespace, &label("True")).await.is(200);
    create(t, &admin).await.fails(422, "Invalid");
    t.merge(&namespace, &label("true")).await.is(200);
    create(t, &admin).await.is(201);
    t.create("resourceclaimtemplates", &template).await.is(201);
}

async fn admin_access_is_given_in_a_labelled_namespace_only(t: &Scope) {
    let namespace = format!("/api/v1/namespaces/{}", t.namespace());
    let label = |value: Doc| doc!({ "metadata": { "labels": { "resource.kubernetes.io/admin-access": value } } });
    t.merge(&namespace, &label(doc!("true"))).await.is(200);
    let admin = claim(doc!({ "deviceClassName": "x", "adminAccess": true }));
    create(t, &admin).await.is(201);
    let given = result("gpu", "d0").set("/adminAccess", true);
    let given = doc!({ "allocation": (allocation(vec![given])) });
    t.merge(&namespace, &label(doc!("false"))).await.is(200);
    let refusal = status(t, given.clone()).await.fails(422, "Invalid");
    let field = "status.allocation.devices.results[0].adminAccess";
    refusal.because("FieldValueForbidden", field).mentions(
        "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on \
         the containing namespace",
    );
    t.merge(&namespace, &label(doc!("true"))).await.is(200);
    status(t, given).await.is(200);
    // What was given stays, whatever becomes of the namespace.
    t.merge(&namespace, &label(Doc::NULL)).await.is(200);
    let reserved = doc!({ "reservedFor": [(consumer(0))] });
    status(t, reserved).await.is(200);
}

async fn template_metadata_is_kept(t: &Scope) {
    let metadata = doc!({ "labels": { "a": "b" }, "annotations": { "c": "d" } });
    let spec = doc!({ "metadata": metadata, "spec": (simple().at("/spec")) });
    let object = doc!({ "metadata": { "name": "t" }, "spec": spec });
    let made = t.made("resourceclaimtemplates", &object).await;
    assert_eq!(made.at("/spec/metadata"), object.at("/spec/metadata"));
    assert_eq!(*made.at("/spec/spec/devices/requests/0/exactly/count"), 1);
    let labelled = made.set("/metadata/labels", doc!({ "a": "b" }));
    t.update("resourceclaimtemplates/t", &labelled)
        .await
        .is(200);
}

fn class(t: &Scope, spec: Doc) -> Doc {
    doc!({ "metadata": { "name": (t.unique("class")) }, "spec": spec })
}

async fn class_selectors_are_checked(t: &Scope) {
    let bogus = class(t, doc!({ "selectors": (cel("bogus")) }));
    let refusal = t
        .create("deviceclasses", &bogus)
        .await
        .fails(422, "Invalid");
    refusal.because("FieldValueInvalid", "spec.selectors[0].cel.expression");
    let many: Vec<Doc> = (0..33).map(|_| doc!({})).collect();
    let refusal = t
        .create("deviceclasses", &class(t, doc!({ "selectors": many })))
        .await;
    refusal
        .fails(422, "Invalid")
        .because("FieldValueTooMany", "spec.selectors");
    let refusal = t
        .create("deviceclasses", &class(t, doc!({ "config": [{}] })))
        .await;
    let field = "spec.config[0].opaque";
    refusal
        .fails(422, "Invalid")
        .because("FieldValueRequired", field);
}

async fn class_generation_follows_its_spec(t: &Scope) {
    let object = class(t, doc!({ "selectors": (cel("true")) }));
    let made = t.made("deviceclasses", &object).await;
    assert_eq!(*made.at("/metadata/generation"), 1);
    let path = format!("deviceclasses/{}", made.meta().name());
    let same = t.update(&path, &made).await.is(200);
    assert_eq!(*same.at("/metadata/generation"), 1);
    let changed = same.set("/spec/selectors", cel("false"));
    let updated = t.update(&path, &changed).await.is(200);
    assert_eq!(*updated.at("/metadata/generation"), 2);
}

async fn slice_place_is_one_and_true(t: &Scope) {
    let bare = || slice(t, vec![]).cut("/spec/nodeName");
    let refusal = t
        .create("resourceslices", &bare().set("/spec/allNodes", false))
        .await;
    let refusal = refusal.fails(422, "Invalid");
    refusal.because("FieldValueInvalid", "spec.allNodes");
    let term = doc!({ "matchExpressions": [{ "key": "a", "operator": "Exists" }] });
    let two = doc!({ "nodeSelectorTerms": [(term.clone()), (term.clone())] });
    let refusal = t
        .create("resourceslices", &bare().set("/spec/nodeSelector", two))
        .await;
    let field = "spec.nodeSelector.nodeSelectorTerms";
    refusal
        .fails(422, "Invalid")
        .because("FieldValueInvalid", field);
    let one = doc!({ "nodeSelectorTerms": [term] });
    t.made("resourceslices", &bare().set("/spec/nodeSelector", one))
        .await;
}

async fn slice_pool_is_checked(t: &Scope) {
    let with = |pool: Doc| slice(t, vec![]).set("/spec/pool", pool);
    let pool = doc!({ "name": "", "generation": (-1), "resourceSliceCount": 0 });
    let refusal = t
        .create("resourceslices", &with(pool))
        .await
        .fails(422, "Invalid");
    refusal
        .because("FieldValueRequired", "spec.pool.name")
        .because("FieldValueInvalid", "spec.pool.generation")
        .because("FieldValueInvalid", "spec.pool.resourceSliceCount");
    let pool = doc!({ "name": "a/b_c", "generation": 1, "resourceSliceCount": 1 });
    let refusal = t
        .create("resourceslices", &with(pool))
        .await
        .fails(422, "Invalid");
    refusal.because("FieldValueInvalid", "spec.pool.name");
}

async fn slice_pool_name_is_immutable(t: &Scope) {
    let made = t.made("resourceslices", &slice(t, vec![])).await;
    let path = format!("resourceslices/{}", made.meta().name());
    let refusal = t.update(&path, &made.set("/spec/pool/name", "other")).await;
    refusal
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "spec.pool.name");
    t.update(&path, &made.set("/spec/pool/generation", 2))
        .await
        .is(200);
}

async fn slice_devices_are_few(t: &Scope) {
    let many = |count: usize| {
        let devices = (0..count).map(|at| doc!({ "name": (format!("d{at}")) }));
        devices.collect::<Vec<Doc>>()
    };
    let refusal = t.create("resourceslices", &slice(t, many(129))).await;
    let refusal = refusal.fails(422, "Invalid");
    refusal.because("FieldValueTooMany", "spec.devices");
    let taint = doc!([{ "key": "k", "effect": "NoSchedule" }]);
    let tainted = slice(t, many(65)).set("/spec/devices/0/taints", taint);
    let refusal = t
        .create("resourceslices", &tainted)
        .await
        .fails(422, "Invalid");
    refusal.because("FieldValueTooMany", "spec.devices");
    t.made("resourceslices", &slice(t, many(128))).await;
}

fn device(attributes: Doc) -> Doc {
    doc!({ "name": "d0", "attributes": attributes })
}

async fn slice_attributes_are_few_and_of_one_kind(t: &Scope) {
    let many = (0..33).map(|at| (format!("a{at}").into(), doc!({ "int": at })));
    let many = Doc::from(windlass_core::Object::new(many.collect()));
    let refusal = t
        .create("resourceslices", &slice(t, vec![device(many)]))
        .await;
    let refusal = refusal.fails(422, "Invalid");
    assert_eq!(refusal.causes()[0].str_at("/reason"), "FieldValueInvalid");
    let two = device(doc!({ "a": { "int": 1, "bool": true } }));
    let refusal = t.create("resourceslices", &slice(t, vec![two])).await;
    let field = "spec.devices[0].attributes[a]";
    refusal
        .fails(422, "Invalid")
        .because("FieldValueInvalid", field);
}

async fn slice_attribute_values_are_checked(t: &Scope) {
    let path = "spec.devices[0].attributes";
    let cases = [
        (
            doc!({ "a": { "string": ("x".repeat(65)) } }),
            "FieldValueTooLong",
            "[a].string",
        ),
        (
            doc!({ "a": { "version": "v1.0" } }),
            "FieldValueInvalid",
            "[a].version",
        ),
    ];
    for (attributes, reason, field) in cases {
        let refusal = t
            .create("resourceslices", &slice(t, vec![device(attributes)]))
            .await;
        let refusal = refusal.fails(422, "Invalid");
        refusal.because(reason, &format!("{path}{field}"));
    }
    let name = "i".repeat(33);
    let long = windlass_core::Object::new(vec![(name.as_str().into(), doc!({ "int": 1 }))]);
    let refusal = t
        .create("resourceslices", &slice(t, vec![device(long.into())]))
        .await;
    let refusal = refusal.fails(422, "Invalid");
    assert_eq!(refusal.causes()[0].str_at("/reason"), "FieldValueTooLong");
    let fine = doc!({
        "a": { "string": ("x".repeat(64)) }, "other.example.com/b": { "version": "1.2.3-rc.1" },
        "_c": { "int": 1 }, "d": { "bool": false }
    });
    t.made("resourceslices", &slice(t, vec![device(fine)]))
        .await;
}

async fn slice_taints_are_checked_and_dated(t: &Scope) {
    let with = |taint: Doc| slice(t, vec![doc!({ "name": "d0", "taints": [taint] })]);
    let refusal = t
        .create(
            "resourceslices",
            &with(doc!({ "key": "k", "effect": "No" })),
        )
        .await;
    let field = "spec.devices[0].taints[0].effect";
    refusal
        .fails(422, "Invalid")
        .because("FieldValueNotSupported", field);
    let made = t
        .made(
            "resourceslices",
            &with(doc!({ "key": "k", "effect": "None" })),
        )
        .await;
    let time = made.str_at("/spec/devices/0/taints/0/timeAdded");
    assert_eq!(time.len(), "2026-01-01T00:00:00Z".len(), "{time}");
}

async fn slice_binding_conditions_come_in_pairs(t: &Scope) {
    let with = |device: Doc| slice(t, vec![device.set("/name", "d0")]);
    for device in [
        doc!({ "bindingConditions": ["a"] }),
        doc!({ "bindingFailureConditions": ["a"] }),
        doc!({ "bindingConditions": ["a"], "bindingFailureConditions": ["a"] }),
    ] {
        let refusal = t.create("resourceslices", &with(device)).await;
        let refusal = refusal.fails(422, "Invalid");
        assert_eq!(refusal.causes()[0].str_at("/reason"), "FieldValueInvalid");
    }
    let five = doc!({
        "bindingConditions": ["a", "b", "c", "d", "e"], "bindingFailureConditions": ["f"]
    });
    let refusal = t
        .create("resourceslices", &with(five))
        .await
        .fails(422, "Invalid");
    refusal.because("FieldValueTooMany", "spec.devices[0].bindingConditions");
    let fine = doc!({ "bindingConditions": ["a"], "bindingFailureConditions": ["b"] });
    t.made("resourceslices", &with(fine)).await;
}

async fn slice_driver_should_be_lower_case(t: &Scope) {
    let upper = slice(t, vec![]).set("/spec/driver", "GPU.example.com");
    let answer = t.create("resourceslices", &upper).await;
    answer.is(201);
    let text = "spec.driver: driver names should be lowercase; \\\"GPU.example.com\\\" contains \
                uppercase characters";
    let warnings = answer.headers("warning");
    assert!(
        warnings.iter().any(|warning| warning.contains(text)),
        "{warnings:?}"
    );
    let wrong = slice(t, vec![]).set("/spec/driver", "a b");
    let refusal = t
        .create("resourceslices", &wrong)
        .await
        .fails(422, "Invalid");
    refusal.because("FieldValueInvalid", "spec.driver");
}

async fn claim_state_is_shown(t: &Scope) {
    let tables = t.with_header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let state = async || {
        let table = tables.get("resourceclaims/c").await.is(200);
        table.str_at("/rows/0/cells/1").to_owned()
    };
    let held = simple().set("/metadata/finalizers", doc!(["example.com/hold"]));
    t.made("resourceclaims", &held).await;
    assert_eq!(state().await, "pending");
    let devices = allocation(vec![result("gpu", "d0")]);
    status(t, doc!({ "allocation": devices })).await.is(200);
    assert_eq!(state().await, "allocated");
    status(t, doc!({ "reservedFor": [(consumer(0))] }))
        .await
        .is(200);
    assert_eq!(state().await, "allocated,reserved");
    t.delete("resourceclaims/c").await.is(200);
    assert_eq!(state().await, "deleted,allocated,reserved");
    t.merge(
        "resourceclaims/c",
        &doc!({ "metadata": { "finalizers": null } }),
    )
    .await
    .is(200);
}

fn pod(entries: Doc, uses: Doc) -> Doc {
    doc!({
        "metadata": { "name": "p" },
        "spec": {
            "containers": [{ "name": "c", "image": "i", "resources": { "claims": uses } }],
            "resourceClaims": entries
        }
    })
}

async fn pod_claims_have_one_source(t: &Scope) {
    let path = "spec.resourceClaims[0]";
    for entry in [
        doc!({ "name": "e" }),
        doc!({ "name": "e", "resourceClaimName": "a", "resourceClaimTemplateName": "b" }),
    ] {
        let refusal = t.create("pods", &pod(doc!([entry]), doc!([]))).await;
        let refusal = refusal.fails(422, "Invalid");
        refusal.because("FieldValueInvalid", path);
    }
    let entry = doc!({ "name": "e", "resourceClaimName": "a" });
    let twice = doc!([(entry.clone()), entry]);
    let refusal = t
        .create("pods", &pod(twice, doc!([])))
        .await
        .fails(422, "Invalid");
    refusal.because("FieldValueDuplicate", "spec.resourceClaims[1].name");
}

async fn container_claims_are_those_of_the_pod(t: &Scope) {
    let entries = || doc!([{ "name": "e", "resourceClaimName": "a" }]);
    let path = "spec.containers[0].resources.claims";
    let refusal = t
        .create("pods", &pod(entries(), doc!([{ "name": "x" }])))
        .await;
    let refusal = refusal.fails(422, "Invalid");
    refusal.because("FieldValueNotFound", &format!("{path}[0]"));
    let both = doc!([{ "name": "e" }, { "name": "e", "request": "r" }]);
    let refusal = t
        .create("pods", &pod(entries(), both))
        .await
        .fails(422, "Invalid");
    assert_eq!(refusal.causes()[0].str_at("/reason"), "FieldValueDuplicate");
    t.create("pods", &pod(entries(), doc!([{ "name": "e" }])))
        .await
        .is(201);
}

async fn counter_sets_have_names_and_counters(t: &Scope) {
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
                 '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
                 '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    let name = t.unique("s");
    let slice = |key: &str, value: Doc| {
        doc!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": { "name": (&name) },
            "spec": {
                "driver": "d.example.com", "pool": { "name": "p", "resourceSliceCount": 1 },
                "allNodes": true
            }
        })
        .set(&format!("/spec/{key}"), value)
    };
    let prefix = format!("ResourceSlice.resource.k8s.io {name:?} is invalid: ");
    let sets = doc!([
        { "name": "", "counters": { "a": { "value": "1" } } }, { "name": "A_" },
        { "name": "x", "counters": { "B_": { "value": "1" } } },
        { "name": "x", "counters": { "c": { "value": "2" } } }
    ]);
    let path = "/apis/resource.k8s.io/v1/resourceslices";
    let refused = t.create(path, &slice("sharedCounters", sets)).await;
    refused.fails(422, "Invalid").says(&format!(
        "{prefix}[spec.sharedCounters[0].name: Required value, spec.sharedCounters[1].name: \
         Invalid value: \"A_\": {label}, spec.sharedCounters[1].counters: Required value, \
         spec.sharedCounters[2].counters: Invalid value: \"B_\": {label}, \
         spec.sharedCounters[3]: Duplicate value: \"x\"]"
    ));
    let many: Vec<Doc> = (0..9)
        .map(|at| doc!({ "name": (format!("a{at}")) }))
        .collect();
    let refused = t.create(path, &slice("sharedCounters", many.into())).await;
    refused.fails(422, "Invalid").says(&format!(
        "{prefix}spec.sharedCounters: Too many: 9: must have at most 8 items"
    ));
    let device = doc!([{ "name": "d", "consumesCounters": [
        { "counterSet": "" }, { "counterSet": "C_", "counters": { "X": { "value": "1" } } }
    ] }]);
    let refused = t.create(path, &slice("devices", device)).await;
    refused.fails(422, "Invalid").says(&format!(
        "{prefix}[spec.devices[0].consumesCounters[0].counterSet: Required value, \
         spec.devices[0].consumesCounters[0].counters: Required value, \
         spec.devices[0].consumesCounters[1].counterSet: Invalid value: \"C_\": {label}, \
         spec.devices[0].consumesCounters[1].counters: Invalid value: \"X\": {label}]"
    ));
}

async fn the_metadata_of_a_claim_template_is_checked(t: &Scope) {
    let template = doc!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": { "name": "t" },
        "spec": {
            "metadata": { "labels": { "-": "a b" }, "annotations": { "a/b/c": "x" } },
            "spec": { "devices": {} }
        }
    });
    let path = format!(
        "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
        t.namespace()
    );
    let refused = t.create(&path, &template).await.fails(422, "Invalid");
    refused
        .because("FieldValueInvalid", "spec.metadata.annotations")
        .because("FieldValueInvalid", "spec.metadata.labels");
}

async fn statuses_of_claims_are_those_of_the_pod(t: &Scope) {
    let pod = doc!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" },
        "spec": { "containers": [{ "name": "a", "image": "a" }] }
    });
    t.made("pods", &pod).await;
    let patch = doc!({ "status": { "resourceClaimStatuses": [
        { "name": "a" }, { "name": "b", "resourceClaimName": "A_" }
    ] } });
    let refused = t.merge("pods/a/status", &patch).await;
    refused.fails(422, "Invalid").says(
        "Pod \"a\" is invalid: [status.resourceClaimStatuses[0].name: Invalid value: \"a\": must \
         match the name of an entry in `spec.resourceClaims`, \
         status.resourceClaimStatuses[1].name: Invalid value: \"b\": must match the name of an \
         entry in `spec.resourceClaims`, status.resourceClaimStatuses[1].resourceClaimName: \
         Invalid value: \"A_\": a lowercase RFC 1123 subdomain must consist of lower case \
         alphanumeric characters, '-' or '.', and must start and end with an alphanumeric \
         character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')]",
    );
}
