//! Expressions of admission: their variables, composed variables, the authorizer, and patches.

use windlass_cel::{
    AccessDecision, AccessQuestion, AdmissionVariables, Authorization, Authorizer, Bindings,
    Budget, CALL_COST_LIMIT, ComposedValues, Composition, Decl, Environment, EvalError, Type,
    Value,
};
use windlass_core::{Doc, doc};

const POLICY: AdmissionVariables = AdmissionVariables {
    has_params: true,
    has_authorizer: true,
    has_patch_types: false,
};
const MUTATION: AdmissionVariables = AdmissionVariables {
    has_patch_types: true,
    ..POLICY
};

/// Allows everything whose verb is `get`, and says what was asked.
#[derive(Debug)]
struct GetOnly;

impl Authorizer for GetOnly {
    fn authorize(&self, question: &AccessQuestion) -> AccessDecision {
        let AccessQuestion {
            group,
            resource,
            subresource,
            namespace,
            name,
            ..
        } = question;
        let path = question.path.as_deref().unwrap_or("-");
        let who = question.service_account.as_ref();
        let who = who.map_or("user".to_owned(), |(namespace, name)| {
            format!("{namespace}:{name}")
        });
        AccessDecision {
            is_allowed: question.verb == "get",
            reason: format!("{who} {path} {group}/{resource}/{subresource} {namespace}/{name}"),
            error: (question.verb == "fail").then(|| "no answer".to_owned()),
        }
    }
}

fn object() -> Doc {
    doc!({
        "metadata": { "name": "web", "namespace": "a", "labels": { "x/y~z": "1" } },
        "spec": { "replicas": 5, "template": {} }
    })
}

fn bindings() -> Bindings<'static> {
    let check = AccessQuestion {
        group: "apps".to_owned(),
        resource: "deployments".to_owned(),
        namespace: "a".to_owned(),
        name: "web".to_owned(),
        ..AccessQuestion::default()
    };
    Bindings::new()
        .with("object", Value::from(&object()))
        .with("oldObject", Value::Null)
        .with("params", Value::Null)
        .with(
            "namespaceObject",
            Value::from(&doc!({ "metadata": { "name": "a", "uid": "1" } })),
        )
        .with(
            "request",
            Value::from(&doc!({ "operation": "CREATE", "userInfo": { "username": "u" } })),
        )
        .with(
            "authorizer",
            Authorization::Authorizer(AccessQuestion::default()).into(),
        )
        .with(
            "authorizer.requestResource",
            Authorization::ResourceCheck(check).into(),
        )
        .with_authorizer(&GetOnly)
}

fn evaluate(variables: AdmissionVariables, expression: &str) -> Result<Value, EvalError> {
    let program = variables
        .environment(&Composition::default())
        .compile(expression)
        .unwrap_or_else(|error| panic!("{expression}: {error}"));
    program.evaluate(&bindings(), &mut Budget::default())
}

fn compile_error(variables: AdmissionVariables, expression: &str) -> String {
    let environment = variables.environment(&Composition::default());
    match environment.compile(expression) {
        Ok(_) => panic!("{expression} compiles"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn policies_see_the_request_and_the_objects() {
    for expression in [
        "object.spec.replicas == 5 && oldObject == null && params == null",
        "request.operation == 'CREATE' && request.userInfo.username == 'u'",
        "namespaceObject.metadata.name == 'a' && !has(namespaceObject.metadata.labels)",
        "!has(request.subResource) && !has(request.namespace)",
        "object.metadata.namespace == 'a'",
        "object.?status.?ready == optional.none() && object.?spec.replicas == optional.of(5)",
        "optional.none() != null && optional.of(1) != null",
        "'%s is %d'.format(['a', 1]) == 'a is 1'",
    ] {
        let value = evaluate(POLICY, expression).map(|value| value.as_bool());
        assert_eq!(value, Ok(Some(true)), "{expression}");
    }
    for (expression, message) in [
        ("request.subResource == ''", "no such key: subResource"),
        ("oldObject.spec.replicas == 1", "no such key: spec"),
        // Upstream declares the field by its name in Go.
        ("namespaceObject.metadata.UID == '1'", "no such key: UID"),
    ] {
        let failed = EvalError::Failed(message.to_owned());
        assert_eq!(
            evaluate(POLICY, expression).err(),
            Some(failed),
            "{expression}"
        );
    }
    for (expression, message) in [
        ("request.uid == ''", "undefined field 'uid'"),
        ("request.object == null", "undefined field 'object'"),
        (
            "namespaceObject.metadata.uid == ''",
            "undefined field 'uid'",
        ),
        (
            "namespaceObject.metadata.managedFields == []",
            "undefined field 'managedFields'",
        ),
        ("variables.x == 1", "undefined field 'x'"),
        ("cel.bind(x, 1, x == 1)", "undeclared reference to 'cel'"),
        ("jsonpatch.escapeKey('a') == 'a'", "undeclared reference to"),
        ("Object{} == Object{}", "undeclared reference to 'Object'"),
    ] {
        let error = compile_error(POLICY, expression);
        assert!(error.contains(message), "{expression}: {error}");
    }
}

#[test]
fn variables_that_are_not_declared_are_refused() {
    let none = AdmissionVariables::default();
    for name in ["params", "authorizer"] {
        let error = compile_error(none, &format!("{name} == null"));
        assert!(
            error.contains(&format!("undeclared reference to '{name}'")),
            "{error}"
        );
    }
    let environment = none.plain_environment();
    let error = environment
        .compile("variables.x")
        .expect_err("no composition");
    assert!(
        error
            .to_string()
            .contains("undeclared reference to 'variables'"),
        "{error}"
    );
}

#[test]
fn the_authorizer_is_asked_step_by_step() {
    for expression in [
        "authorizer.path('/healthz').check('get').allowed()",
        "!authorizer.path('/healthz').check('post').allowed()",
        "authorizer.group('').resource('pods').check('get').reason() == 'user - /pods/ /'",
        "authorizer.group('apps').resource('deployments').subresource('scale').namespace('b').name('n').check('get').reason() == 'user - apps/deployments/scale b/n'",
        "authorizer.serviceAccount('ns', 'sa').path('/x').check('get').reason() == 'ns:sa /x // /'",
        "authorizer.requestResource.check('get').reason() == 'user - apps/deployments/ a/web'",
        "authorizer.requestResource.subresource('status').check('get').allowed()",
        "authorizer.path('/x').check('fail').errored() && authorizer.path('/x').check('fail').error() == 'no answer'",
        "!authorizer.path('/x').check('get').errored() && authorizer.path('/x').check('get').error() == ''",
        "authorizer.group('').resource('pods').fieldSelector('a=b').labelSelector('c=d').check('get').allowed()",
        "authorizer.group('').resource('pods') != authorizer.requestResource",
    ] {
        let value = evaluate(POLICY, expression).map(|value| value.as_bool());
        assert_eq!(value, Ok(Some(true)), "{expression}");
    }
    for (expression, message) in [
        (
            "authorizer.path(' ').check('get').allowed()",
            "path must not be empty",
        ),
        (
            "authorizer.group('').resource('').check('get').allowed()",
            "resource must not be empty",
        ),
        (
            "authorizer.serviceAccount('ns', 'A').path('/').check('get').allowed()",
            "Invalid service account name",
        ),
        (
            "authorizer.serviceAccount('N', 'a').path('/').check('get').allowed()",
            "Invalid service account namespace",
        ),
    ] {
        let failed = EvalError::Failed(message.to_owned());
        assert_eq!(
            evaluate(POLICY, expression).err(),
            Some(failed),
            "{expression}"
        );
    }
    for expression in [
        "authorizer.check('get').allowed()",
        "authorizer.group('').check('get').allowed()",
        "authorizer.resource('pods')",
        "authorizer.path('/').check('get').reason() == true",
    ] {
        let error = compile_error(POLICY, expression);
        assert!(
            error.contains("found no matching overload"),
            "{expression}: {error}"
        );
    }
}

#[test]
fn two_questions_fit_into_one_evaluation() {
    let question = "authorizer.path('/x').check('get').allowed()";
    let two = format!("{question} && {question}");
    assert!(evaluate(POLICY, &two).is_ok());
    let three = format!("{two} && {question}");
    assert_eq!(evaluate(POLICY, &three).err(), Some(EvalError::CostLimit));
}

#[test]
fn variables_are_composed_lazily_and_counted() {
    let mut composition = Composition::default();
    for (name, expression) in [
        ("replicas", "object.spec.replicas"),
        ("twice", "variables.replicas * 2"),
        ("list", "[1, 2, 3]"),
        ("broken", "object.spec.nothing"),
        ("wrong", "'a' + 1"),
        (
            "endless",
            "lists.range(1000).all(x, lists.range(1000).all(y, true))",
        ),
    ] {
        let environment = POLICY.environment(&composition);
        let _ = composition.add(&environment, name, expression);
    }
    let environment = POLICY.environment(&composition);
    let bindings = bindings();
    let values = ComposedValues::new(&composition, &bindings);
    let run = |expression: &str, budget: &mut Budget<'_>| {
        let program = environment
            .compile(expression)
            .unwrap_or_else(|error| panic!("{expression}: {error}"));
        values.evaluate(&program, budget)
    };
    for expression in [
        "variables.twice == 10",
        "variables.list.size() == 3 && variables.list[0] == 1",
        "has(variables.replicas) && variables.?replicas.orValue(0) == 5",
        "true || variables.broken == 1",
    ] {
        let value = run(expression, &mut Budget::default()).map(|value| value.as_bool());
        assert_eq!(value, Ok(Some(true)), "{expression}");
    }
    let message = "composited variable \"broken\" fails to evaluate: no such key: nothing";
    let failed = EvalError::Failed(message.to_owned());
    assert_eq!(
        run("variables.broken == 1", &mut Budget::default()).err(),
        Some(failed)
    );
    let failed = run("variables.wrong == 1", &mut Budget::default()).expect_err("wrong");
    let prefix = "composited variable \"wrong\" fails to compile: compilation failed: ERROR: <input>:1:5: found no matching overload";
    assert!(failed.to_string().starts_with(prefix), "{failed}");
    assert!(
        environment.compile("variables.list == 'a'").is_err(),
        "a variable has the type of its expression"
    );

    // A variable has the limit of a call for itself, and its cost is taken from the budget once.
    let mut budget = Budget::new(10_000, CALL_COST_LIMIT);
    assert_eq!(
        run("variables.endless", &mut budget).err(),
        Some(EvalError::Budget)
    );
    let mut budget = Budget::default();
    let failed = run("variables.endless", &mut budget).expect_err("remembered");
    assert_eq!(
        failed.to_string(),
        "composited variable \"endless\" fails to evaluate: operation cancelled: actual cost limit exceeded"
    );
    assert!(budget.spent() < 10, "{}", budget.spent());
}

#[test]
fn mutations_construct_objects_and_patches() {
    let value = evaluate(
        MUTATION,
        "Object{spec: Object.spec{replicas: object.spec.replicas + 1, ?paused: optional.none(), ports: [Object.spec.ports{port: 80}]}}",
    )
    .expect("an object");
    let Value::Message(message) = &value else {
        panic!("{value:?}");
    };
    assert_eq!(message.name(), "Object");
    assert!(message.misnamed().is_empty());
    let wanted = doc!({ "spec": { "replicas": 6, "ports": [{ "port": 80 }] } });
    assert_eq!(value.to_doc(), Some(wanted));

    let value = evaluate(
        MUTATION,
        "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('x/y~z'), value: 'a'}]",
    )
    .expect("a patch");
    let wanted = doc!([{ "op": "add", "path": "/metadata/labels/x~1y~0z", "value": "a" }]);
    assert_eq!(value.to_doc(), Some(wanted));

    let value = evaluate(
        MUTATION,
        "Object{spec: Object.metadata{}, m: {'a': [Object.x{}]}}",
    );
    let Ok(Value::Message(message)) = value else {
        panic!("{value:?}");
    };
    assert_eq!(
        message.misnamed(),
        [
            "unexpected type name \"Object.x\", expected \"Object.m\", which matches field name path from root Object type",
            "unexpected type name \"Object.metadata\", expected \"Object.spec\", which matches field name path from root Object type",
        ]
    );
    for (expression, message) in [
        (
            "JSONPatch{op: 1}",
            "expected type of field 'op' is 'string' but provided type is 'int'",
        ),
        ("JSONPatch{what: 1}", "undefined field 'what'"),
        (
            "Thing{a: 1}",
            "undeclared reference to 'Thing' (in container '')",
        ),
        (
            "[JSONPatch{}, Object{}]",
            "expected type 'JSONPatch' but found 'Object'",
        ),
        ("Object{spec: }", "Syntax error"),
        ("object.spec{a: 1", "Syntax error"),
    ] {
        let error = compile_error(MUTATION, expression);
        assert!(error.contains(message), "{expression}: {error}");
    }
    let program = MUTATION
        .environment(&Composition::default())
        .compile("[JSONPatch{}]");
    let ty = program.expect("compiles").result_type().to_string();
    assert_eq!(ty, "list(JSONPatch)");
}

#[test]
fn reserved_words_name_fields_without_being_escaped() {
    let words = [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    let decl = Decl::object(
        "object",
        words.map(|word| (word.into(), Decl::plain(Type::String, 10))),
    );
    let environment = Environment::builder()
        .variable("self", std::sync::Arc::clone(&decl))
        .build();
    for word in words {
        let object = Doc::from(windlass_core::Object::new(vec![(
            windlass_core::Str::new(word),
            Doc::from("x"),
        )]));
        for expression in [
            format!("self.{word} == 'x' && has(self.{word})"),
            format!("self.__{word}__ == 'x'"),
        ] {
            let program = environment
                .compile(&expression)
                .unwrap_or_else(|error| panic!("{expression}: {error}"));
            let bindings = Bindings::new().with("self", Value::declared(&object, &decl));
            let value = program.evaluate(&bindings, &mut Budget::default());
            assert_eq!(
                value.map(|value| value.as_bool()),
                Ok(Some(true)),
                "{expression}"
            );
        }
        assert!(
            environment.compile(word).is_err(),
            "{word} is not a variable"
        );
    }
    for word in ["in", "true", "false", "null"] {
        let error = environment.compile(&format!("self.{word} == 'x'"));
        let error = error.expect_err("part of the grammar").to_string();
        assert!(
            error.contains("Syntax error: no viable alternative at input"),
            "{error}"
        );
    }
}
