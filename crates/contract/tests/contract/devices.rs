//! Claims for devices, and the slices that offer them.

use windlass_contract::{Edit, Scope, cases, names};
use windlass_core::{Doc, doc};

cases![
    claim_is_allocated_then_reserved,
    claim_cannot_be_reserved_before_it_is_allocated,
    allocation_cannot_change,
    allocation_cannot_go_while_it_is_reserved,
    released_claim_can_be_deallocated,
    main_resource_leaves_the_status,
    status_leaves_the_spec,
    request_needs_a_choice,
    request_needs_a_class_name,
    request_mode_is_checked,
    request_names_are_unique,
    all_mode_takes_no_count,
    template_is_immutable,
    stored_settings_above_the_limit_stay_valid,
    slice_fields_can_be_selected,
    slice_driver_and_node_are_immutable,
    slice_generation_follows_its_devices,
    slice_needs_one_place,
    slice_device_names_are_unique,
];

fn claim(exactly: Doc) -> Doc {
    let requests = doc!([{ "name": "gpu", "exactly": exactly }]);
    doc!({ "metadata": { "name": "c" }, "spec": { "devices": { "requests": requests } } })
}

fn simple_claim() -> Doc {
    claim(doc!({ "deviceClassName": "gpu.example.com" }))
}

fn allocation(device: &str) -> Doc {
    doc!({ "devices": { "results": [{
        "request": "gpu", "driver": "gpu.example.com", "pool": "n", "device": device
    }] } })
}

fn reservation() -> Doc {
    doc!([{ "resource": "pods", "name": "p", "uid": "1" }])
}

fn slice(t: &Scope) -> Doc {
    doc!({
        "metadata": { "name": (t.unique("s")) },
        "spec": {
            "driver": "gpu.example.com", "nodeName": (t.namespace()),
            "pool": { "name": "n", "generation": 1, "resourceSliceCount": 1 },
            "devices": [{ "name": "d0" }]
        }
    })
}

async fn patch_status(t: &Scope, status: Doc) -> windlass_contract::Answer {
    t.merge("resourceclaims/c/status", &doc!({ "status": status }))
        .await
}

async fn make_reserved(t: &Scope) {
    t.made("resourceclaims", &simple_claim()).await;
    patch_status(t, doc!({ "allocation": (allocation("d0")) }))
        .await
        .is(200);
    patch_status(t, doc!({ "reservedFor": (reservation()) }))
        .await
        .is(200);
}

async fn claim_is_allocated_then_reserved(t: &Scope) {
    make_reserved(t).await;
    let claim = t.get("resourceclaims/c").await.is(200);
    assert_eq!(claim.at("/status/allocation"), &allocation("d0"));
    assert_eq!(claim.at("/status/reservedFor"), &reservation());
}

async fn claim_cannot_be_reserved_before_it_is_allocated(t: &Scope) {
    t.made("resourceclaims", &simple_claim()).await;
    let answer = patch_status(t, doc!({ "reservedFor": (reservation()) })).await;
    answer
        .fails(422, "Invalid")
        .says(
            "ResourceClaim.resource.k8s.io \"c\" is invalid: status.reservedFor: Forbidden: may \
             not be specified when `allocated` is not set",
        )
        .because("FieldValueForbidden", "status.reservedFor");
}

async fn allocation_cannot_change(t: &Scope) {
    make_reserved(t).await;
    let answer = patch_status(t, doc!({ "allocation": (allocation("d1")) })).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "status.allocation")
        .mentions("field is immutable");
}

async fn allocation_cannot_go_while_it_is_reserved(t: &Scope) {
    make_reserved(t).await;
    let answer = patch_status(t, doc!({ "allocation": null })).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "status.reservedFor");
}

async fn released_claim_can_be_deallocated(t: &Scope) {
    make_reserved(t).await;
    let freed = patch_status(t, doc!({ "allocation": null, "reservedFor": null }))
        .await
        .is(200);
    assert_eq!(freed.at("/status"), &doc!({}));
}

async fn main_resource_leaves_the_status(t: &Scope) {
    let made = t.made("resourceclaims", &simple_claim()).await;
    let patch = doc!({ "status": { "allocation": (allocation("d0")) } });
    assert_eq!(t.merge("resourceclaims/c", &patch).await.is(200), made);
}

async fn status_leaves_the_spec(t: &Scope) {
    let made = t.made("resourceclaims", &simple_claim()).await;
    let changed = made
        .set("/spec/devices/requests/0/name", "other")
        .set("/status/allocation", allocation("d0"));
    let updated = t.update("resourceclaims/c/status", &changed).await.is(200);
    assert_eq!(updated.at("/spec"), made.at("/spec"));
}

async fn request_needs_a_choice(t: &Scope) {
    let object = simple_claim().set("/spec/devices/requests", doc!([{ "name": "gpu" }]));
    let answer = t.create("resourceclaims", &object).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueRequired", "spec.devices.requests[0]")
        .mentions("exactly one of `exactly` or `firstAvailable` is required");
}

async fn request_needs_a_class_name(t: &Scope) {
    let answer = t
        .create("resourceclaims", &claim(doc!({ "deviceClassName": "A_" })))
        .await;
    let field = "spec.devices.requests[0].exactly.deviceClassName";
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", field);
}

async fn request_mode_is_checked(t: &Scope) {
    let object = claim(doc!({ "deviceClassName": "a", "allocationMode": "Some" }));
    let answer = t.create("resourceclaims", &object).await;
    let field = "spec.devices.requests[0].exactly.allocationMode";
    answer
        .fails(422, "Invalid")
        .because("FieldValueNotSupported", field);
}

async fn request_names_are_unique(t: &Scope) {
    let request = simple_claim().at("/spec/devices/requests/0").clone();
    let object = simple_claim().set("/spec/devices/requests/-", request);
    let answer = t.create("resourceclaims", &object).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueDuplicate", "spec.devices.requests[1]");
}

async fn all_mode_takes_no_count(t: &Scope) {
    let object = claim(doc!({ "deviceClassName": "a", "allocationMode": "All", "count": 2 }));
    let answer = t.create("resourceclaims", &object).await;
    let field = "spec.devices.requests[0].exactly.count";
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", field);
}

async fn template_is_immutable(t: &Scope) {
    let object =
        doc!({ "metadata": { "name": "c" }, "spec": { "spec": (simple_claim().at("/spec")) } });
    t.made("resourceclaimtemplates", &object).await;
    let patch = doc!({ "spec": { "spec": { "devices": { "requests": null } } } });
    let answer = t.merge("resourceclaimtemplates/c", &patch).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "spec")
        .mentions("field is immutable");
}

async fn slice_fields_can_be_selected(t: &Scope) {
    let slice = slice(t);
    t.made("resourceslices", &slice).await;
    let name = slice.str_at("/metadata/name");
    let selector = |driver: &str| {
        let node = t.namespace();
        format!("resourceslices?fieldSelector=spec.nodeName%3D{node},spec.driver%3D{driver}")
    };
    assert_eq!(
        names(&t.get(&selector("gpu.example.com")).await.is(200)),
        [name]
    );
    assert!(names(&t.get(&selector("other.example.com")).await.is(200)).is_empty());
    t.get("resourceslices?fieldSelector=spec.color%3D1")
        .await
        .fails(400, "BadRequest");
}

async fn slice_driver_and_node_are_immutable(t: &Scope) {
    let made = t.made("resourceslices", &slice(t)).await;
    let path = format!("resourceslices/{}", made.str_at("/metadata/name"));
    for (pointer, field) in [
        ("/spec/driver", "spec.driver"),
        ("/spec/nodeName", "spec.nodeName"),
    ] {
        let refusal = t
            .update(&path, &made.set(pointer, "other.example.com"))
            .await;
        refusal
            .fails(422, "Invalid")
            .because("FieldValueInvalid", field)
            .mentions("field is immutable");
    }
}

async fn slice_generation_follows_its_devices(t: &Scope) {
    let made = t.made("resourceslices", &slice(t)).await;
    let path = format!("resourceslices/{}", made.str_at("/metadata/name"));
    let changed = made.set("/spec/devices", doc!([{ "name": "d1" }]));
    let updated = t.update(&path, &changed).await.is(200);
    assert_eq!(updated.at("/metadata/generation"), 2);
}

async fn slice_needs_one_place(t: &Scope) {
    let none = slice(t).cut("/spec/nodeName");
    let answer = t.create("resourceslices", &none).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueRequired", "spec");
    let two = slice(t).set("/spec/allNodes", true);
    let answer = t.create("resourceslices", &two).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "spec");
}

async fn slice_device_names_are_unique(t: &Scope) {
    let twice = slice(t).set("/spec/devices", doc!([{ "name": "d0" }, { "name": "d0" }]));
    let answer = t.create("resourceslices", &twice).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueDuplicate", "spec.devices[1]");
}

/// The limit came later than the first classes.
async fn stored_settings_above_the_limit_stay_valid(t: &Scope) {
    let settings = |size: usize| {
        let parameters = doc!({ "a": ("x".repeat(size)) });
        doc!([{ "opaque": { "driver": "gpu.example.com", "parameters": parameters } }])
    };
    let name = t.unique("class");
    let large = doc!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "metadata": { "name": (name.as_str()) }, "spec": { "config": (settings(11 * 1024)) }
    });
    let field = "spec.config[0].opaque.parameters";
    let refusal = t.create("deviceclasses", &large).await;
    refusal
        .fails(422, "Invalid")
        .because("FieldValueTooLong", field);
    let stored = large
        .set("/metadata/uid", "4ba9cd5e-0000-4000-8000-000000000000")
        .set("/metadata/creationTimestamp", "2026-01-01T00:00:00Z")
        .set("/metadata/generation", 1);
    let path = format!("deviceclasses/{name}");
    let key = format!("/registry/{path}");
    t.stored(&key, &path, &stored).await;
    let labels = doc!({ "metadata": { "labels": { "a": "b" } } });
    t.merge(&path, &labels).await.is(200);
    let selectors = doc!({ "spec": { "selectors": [{ "cel": { "expression": "true" } }] } });
    let changed = t.merge(&path, &selectors).await.is(200);
    assert_eq!(changed.at("/spec/config"), large.at("/spec/config"));
    let other = doc!({ "spec": { "config": (settings(12 * 1024)) } });
    t.merge(&path, &other)
        .await
        .fails(422, "Invalid")
        .because("FieldValueTooLong", field);
}
