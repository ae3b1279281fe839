//! Expressions: the variables and libraries of policies, and the texts of errors.

use windlass_contract::objects::config_map;
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

use crate::support::{POLICIES, denying, validating, validation, warnings};

cases![
    variables_of_a_request,
    libraries,
    errors_have_upstreams_texts,
    authorizer_decides,
    namespace_is_not_seen_by_match_conditions,
    composed_variables,
    composed_variables_fail_their_users,
    impersonated_user_is_seen,
];

/// Makes a policy of expressions that all hold.
async fn all_hold(t: &Scope, policy: &Doc, object: &Doc) {
    denying(t, policy).await;
    t.create("configmaps", object).await.is(201);
}

fn all(expressions: &[&str]) -> Vec<Doc> {
    expressions.iter().map(|it| validation(it)).collect()
}

async fn variables_of_a_request(t: &Scope) {
    let namespace = t.namespace();
    let named = format!("namespaceObject.metadata.name == '{namespace}'");
    let within = format!("request.namespace == '{namespace}'");
    let expressions = [
        "object.metadata.name == 'x' && object.kind == 'ConfigMap' && object.apiVersion == 'v1'",
        "oldObject == null",
        "has(object.metadata.uid) && has(object.metadata.creationTimestamp)",
        "!has(object.metadata.resourceVersion)",
        "!has(object.metadata.managedFields)",
        "request.operation == 'CREATE'",
        "request.name == 'x'",
        "request.kind.kind == 'ConfigMap' && request.kind.group == '' && request.kind.version == 'v1'",
        "request.resource.resource == 'configmaps' && request.requestResource == request.resource",
        "request.requestKind == request.kind",
        "!has(request.subResource) && !has(request.requestSubResource)",
        "request.options.kind == 'CreateOptions' && request.options.apiVersion == 'meta.k8s.io/v1'",
        "request.options.fieldManager == 'tester'",
        "!request.dryRun",
        "'system:authenticated' in request.userInfo.groups",
        "size(request.userInfo.username) > 0",
        "namespaceObject.status.phase == 'Active' && namespaceObject.spec.finalizers == ['kubernetes']",
        "has(namespaceObject.metadata.resourceVersion) && !has(namespaceObject.metadata.annotations)",
        "type(namespaceObject.metadata.creationTimestamp) == string",
        "object.?data.?key == optional.none() && optional.none() != null",
        "!has(oldObject.data) && !has(object.metadata.name.first) && !oldObject.?data.hasValue()",
        &named,
        &within,
    ];
    let policy = validating(t, "a", all(&expressions));
    denying(t, &policy).await;
    let object = config_map("x").cut("/data");
    t.create("configmaps?fieldManager=tester", &object)
        .await
        .is(201);
}

async fn libraries(t: &Scope) {
    let expressions = [
        "quantity('1.5Gi').isGreaterThan(quantity('1Gi')) && isQuantity('5m')",
        "url('https://a:80/b?c=d').getHostname() == 'a' && isURL('/x')",
        "ip('10.0.0.1').family() == 4 && isIP('::1')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && isCIDR('10.0.0.0/8')",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('v1.2', true).minor() == 2",
        "format.dns1123Label().validate('A').hasValue()",
        "'a-b'.find('[a-z]-') == 'a-' && 'aXbX'.findAll('X') == ['X', 'X']",
        "[3, 1, 2].isSorted() == false && [1, 2].sum() == 3 && [1, 2].max() == 2",
        "sets.contains([1, 2], [1]) && sets.intersects([1], [1, 2]) && sets.equivalent([1], [1])",
        "{'a': 1}.all(k, v, k == 'a' && v == 1) && [1, 2].exists(i, v, i == 1 && v == 2)",
        "[1, 2].transformList(i, v, i + v) == [1, 3] && {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
        "'%s is %d'.format(['a', 1]) == 'a is 1' && 'a,b'.split(',') == ['a', 'b']",
        "lists.range(3) == [0, 1, 2] && [1, 2, 3].slice(1, 2) == [2] && [[1], [2]].flatten() == [1, 2]",
        "[2, 1].sort() == [1, 2] && [1, 1].distinct() == [1] && [1, 2].reverse() == [2, 1]",
        "timestamp('2026-01-01T00:00:00Z') + duration('1h') == timestamp('2026-01-01T01:00:00Z')",
        "object.data.exists_one(k, k == 'key') && object.data.map(k, object.data[k]) == ['value']",
        "1 < 1.5 && 2u > 1 && dyn(1) == dyn(1.0)",
        "'abc'.matches('^a.c$') && 'abc'.lowerAscii().upperAscii() == 'ABC'",
        "dyn(object).metadata.labels['a.b/c'] == 'd'",
    ];
    let policy = validating(t, "a", all(&expressions));
    let object = config_map("x").set("/data", doc!({ "key": "value" }));
    let object = object.set("/metadata/labels", doc!({ "a.b/c": "d" }));
    all_hold(t, &policy, &object).await;
}

async fn errors_have_upstreams_texts(t: &Scope) {
    let rows = [
        ("object.nothing == 1", "no such key: nothing"),
        ("oldObject.data == null", "no such key: data"),
        ("request.subResource == 'x'", "no such key: subResource"),
        ("namespaceObject.metadata.UID == ''", "no such key: UID"),
        ("object.data['absent'] == ''", "no such key: absent"),
        ("object.metadata.name > 1", "no such overload"),
        ("1 / int(object.data.zero) == 1", "division by zero"),
        (
            "[1][int(object.data.zero) + 1] == 1",
            "index out of bounds: 1",
        ),
        (
            "quantity(object.data.zero + 'x') == quantity('1')",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            "authorizer.path(' ').check('get').allowed()",
            "path must not be empty",
        ),
        (
            "authorizer.group('').resource('').check('get').allowed()",
            "resource must not be empty",
        ),
        (
            "authorizer.serviceAccount('a', 'B').path('/').check('get').allowed()",
            "Invalid service account name",
        ),
    ];
    let policy = validating(t, "a", all(&rows.map(|(expression, _)| expression)));
    let object = config_map("x").set("/data", doc!({ "zero": "0" }));
    let found = warnings(t, &policy, &object).await;
    let wanted = rows
        .map(|(expression, error)| format!("expression '{expression}' resulted in error: {error}"));
    assert_eq!(found, wanted);
}

async fn authorizer_decides(t: &Scope) {
    let expressions = [
        "authorizer.group('').resource('pods').namespace(request.namespace).check('delete').allowed()",
        "authorizer.requestResource.check('custom').allowed()",
        "authorizer.path('/healthz').check('get').allowed()",
        "!authorizer.serviceAccount('default', 'nobody').group('').resource('secrets').check('get').allowed()",
        "!authorizer.group('apps').resource('deployments').subresource('scale').name('a').check('get').errored()",
        "authorizer.group('').resource('pods').check('get').error() == ''",
        "authorizer.group('').resource('pods').fieldSelector('a=b').labelSelector('c').check('list').allowed()",
    ];
    let policy = validating(t, "a", all(&expressions));
    all_hold(t, &policy, &config_map("x")).await;

    let role = windlass_contract::objects::role("writer", &["create"], &["configmaps"]);
    t.made("roles", &role).await;
    let bound = windlass_contract::objects::role_binding("writer", "writer", "jane");
    t.made("rolebindings", &bound).await;
    let jane = t.as_user("jane");
    loop {
        // The real server learns of the role a moment later.
        let answer = jane.create("configmaps", &config_map("y")).await;
        if answer.code() != 403 {
            answer
                .fails(422, "Invalid")
                .mentions("failed expression: authorizer.group('')");
            break;
        }
    }
}

async fn namespace_is_not_seen_by_match_conditions(t: &Scope) {
    let conditions = doc!([{ "name": "unseen", "expression": "namespaceObject == null" }]);
    let policy = validating(t, "a", vec![validation("namespaceObject == null")]);
    let policy = policy.set("/spec/matchConditions", conditions);
    denying(t, &policy).await;
    t.create("configmaps", &config_map("x"))
        .await
        .fails(422, "Invalid")
        .mentions("failed expression: namespaceObject == null");
}

async fn composed_variables(t: &Scope) {
    let variables = doc!([
        { "name": "name", "expression": "object.metadata.name" },
        { "name": "twice", "expression": "variables.name + variables.name" },
        { "name": "numbers", "expression": "[1, 2, 3]" },
        { "name": "never", "expression": "object.nothing" }
    ]);
    let expressions = [
        "variables.twice == 'xx'",
        "variables.numbers.size() == 3 && variables.numbers[0] == 1",
        "has(variables.name)",
        "true || variables.never == 1",
    ];
    let policy = validating(t, "a", all(&expressions)).set("/spec/variables", variables);
    all_hold(t, &policy, &config_map("x")).await;
}

async fn composed_variables_fail_their_users(t: &Scope) {
    let variables = doc!([
        { "name": "broken", "expression": "object.nothing" },
        { "name": "user", "expression": "variables.broken + 1" }
    ]);
    let expressions = ["variables.broken == 1", "variables.user == 1"];
    let policy = validating(t, "a", all(&expressions)).set("/spec/variables", variables);
    let found = warnings(t, &policy, &config_map("x")).await;
    let broken = "composited variable \"broken\" fails to evaluate: no such key: nothing";
    let wanted = [
        format!("expression 'variables.broken == 1' resulted in error: {broken}"),
        format!(
            "expression 'variables.user == 1' resulted in error: composited variable \"user\" \
             fails to evaluate: {broken}"
        ),
    ];
    assert_eq!(found, wanted);
}

async fn impersonated_user_is_seen(t: &Scope) {
    let expression = "request.userInfo.username == 'system:admin-jane' && \
                      request.userInfo.groups == ['system:masters', 'system:authenticated']";
    let policy = validating(t, "a", vec![validation(expression)]);
    t.made(POLICIES, &policy.set("/metadata/name", t.unique("unbound")))
        .await;
    denying(t, &policy).await;
    let jane = t
        .as_user("system:admin-jane")
        .with_header("impersonate-group", "system:masters");
    jane.create("configmaps", &config_map("x")).await.is(201);
    t.create("configmaps", &config_map("y"))
        .await
        .fails(422, "Invalid");
}
