//! The language and its libraries: expressions and what they give.

use windlass_cel::{Bindings, Budget, Decl, Environment, EvalError, ListIdentity, Type, Value};
use windlass_core::{Doc, doc};

fn environment() -> Environment {
    let text = || Decl::plain(Type::String, 100);
    let item = Decl::object(
        "item",
        [
            ("name".into(), text()),
            ("port".into(), Decl::plain(Type::Int, 0)),
        ],
    );
    let object = Decl::object(
        "object",
        [
            ("name".into(), text()),
            ("replicas".into(), Decl::plain(Type::Int, 0)),
            ("ratio".into(), Decl::plain(Type::Double, 0)),
            ("when".into(), Decl::plain(Type::Timestamp, 32)),
            ("day".into(), Decl::date(12)),
            ("every".into(), Decl::plain(Type::Duration, 32)),
            ("blob".into(), Decl::plain(Type::Bytes, 32)),
            ("port".into(), Decl::plain(Type::Dyn, 32)),
            ("labels".into(), Decl::map(text(), text(), 10)),
            (
                "items".into(),
                Decl::list(
                    std::sync::Arc::clone(&item),
                    ListIdentity::Keys(vec!["name".into()]),
                    10,
                ),
            ),
            ("tags".into(), Decl::list(text(), ListIdentity::Set, 10)),
            ("x-y".into(), text()),
            ("namespace".into(), text()),
            ("missing".into(), text()),
            ("null".into(), Decl::plain(Type::Timestamp, 32)),
        ],
    );
    Environment::builder()
        .variable("self", object)
        .variable("any", Decl::plain(Type::Dyn, 0))
        .with_bind()
        .build()
}

fn input() -> Doc {
    doc!({
        "name": "web", "replicas": 3, "ratio": 2, "when": "2026-01-02T03:04:05.5Z", "day": "2026-01-02",
        "every": "1h30m", "blob": "YWJj", "port": "http", "labels": { "a": "1", "b": "2" },
        "items": [{ "name": "x", "port": 1 }, { "name": "y", "port": 2 }],
        "tags": ["b", "a"], "x-y": "dashed", "namespace": "ns", "null": Doc::NULL
    })
}

fn evaluate(expression: &str) -> Result<Value, EvalError> {
    let env = environment();
    let program = env
        .compile(expression)
        .unwrap_or_else(|error| panic!("{expression}: {error}"));
    let object = input();
    let bindings = Bindings::new()
        .with("self", Value::declared(&object, &env_decl()))
        .with("any", Value::from(&object));
    program.evaluate(&bindings, &mut Budget::default())
}

/// The declaration of `self`, the same for every test.
fn env_decl() -> std::sync::Arc<Decl> {
    match environment()
        .compile("self")
        .expect("self is declared")
        .result_type()
    {
        Type::Object(decl) => std::sync::Arc::clone(decl),
        other => panic!("self is {other}"),
    }
}

fn check_all(expressions: &[&str]) {
    for expression in expressions {
        match evaluate(expression) {
            Ok(Value::Bool(true)) => {}
            other => panic!("{expression} gives {other:?}"),
        }
    }
}

fn check_fails(cases: &[(&str, &str)]) {
    for (expression, message) in cases {
        let error = evaluate(expression).expect_err(expression);
        assert_eq!(error.to_string(), *message, "{expression}");
    }
}

fn check_refused(cases: &[(&str, &str)]) {
    for (expression, message) in cases {
        let error = environment().compile(expression).expect_err(expression);
        assert_eq!(error.to_string(), *message, "{expression}");
    }
}

#[test]
fn operators_follow_precedence_and_types() {
    check_all(&[
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "7 / 2 == 3 && -7 / 2 == -3 && -7 % 3 == -1",
        "7.0 / 2.0 == 3.5",
        "1u + 2u == 3u",
        "dyn(1) == 1.0 && dyn(1) == 1u && dyn(1) != dyn('1')",
        "1 < 2.5 && 3u > 2 && 2.0 >= 2u",
        "'a' < 'b' && b'a' < b'b' && false < true",
        "'a' + 'b' == 'ab' && b'a' + b'b' == b'ab'",
        "[1] + [2, 3] == [1, 2, 3]",
        "!(1 > 2) && --1 == 1 && !!true",
        "1 > 2 ? false : true",
        "2 in [1, 2] && !(3 in [1, 2]) && 'a' in {'a': 1}",
        "{'a': {'b': 2}}.a.b == 2 && {'a': 1}['a'] == 1",
        "[1, 2][1] == 2",
        "0x1f == 31 && 1e3 == 1000.0 && .5 == 0.5",
        r#"'\x41\u0042\n' == "AB\n" && r'\d' == '\\d' && '''a'b''' == "a'b""#,
        r"b'\377' == b'\xff'",
        "// a comment\n true",
        "null == null && type(null) == null_type",
        "type(1) == int && type(type(1)) == type && type([]) == list && type({}) == map",
        "type(timestamp('2026-01-01T00:00:00Z')) == google.protobuf.Timestamp",
        "-9223372036854775808 < 0",
    ]);
}

#[test]
fn arithmetic_that_does_not_fit_is_an_error() {
    check_fails(&[
        ("9223372036854775807 + 1 > 0", "return error for overflow"),
        ("1 / 0 == 1", "division by zero"),
        ("1 % 0 == 1", "modulus by zero"),
        ("0u - 1u == 0u", "return error for overflow"),
        ("[1][5] == 1", "index out of bounds: 5"),
        ("{'a': 1}['b'] == 1", "no such key: b"),
        ("any.nothing == 1", "no such key: nothing"),
        ("any.name + 1 == 2", "no such overload"),
        (
            "int('x') == 1",
            "strconv.ParseInt: parsing \"x\": invalid syntax",
        ),
        ("{'a': 1, 'a': 2} == {}", "Failed with repeated key: a"),
        ("[].min() == 1", "min called on empty list"),
        (
            "optional.none().value() == 1",
            "optional.none() dereference",
        ),
    ]);
}

#[test]
fn logic_looks_past_errors_that_do_not_matter() {
    check_all(&[
        "true || 1 / 0 == 1",
        "1 / 0 == 1 || true",
        "!(false && 1 / 0 == 1)",
        "!(1 / 0 == 1 && false)",
        "[0, 1].exists(x, 1 / x == 1)",
        "!([0, 2].all(x, 1 / x == 1))",
    ]);
    check_fails(&[
        ("1 / 0 == 1 || false", "division by zero"),
        ("[0, 2].exists(x, 1 / x == 1)", "division by zero"),
        ("[0, 1].map(x, 1 / x) == [1]", "division by zero"),
    ]);
}

#[test]
fn macros_loop_over_lists_and_maps() {
    check_all(&[
        "[1, 2, 3].all(x, x > 0) && ![1, 2].all(x, x > 1)",
        "[1, 2, 3].exists(x, x == 2) && ![].exists(x, x)",
        "[1, 2, 3].exists_one(x, x == 2) && ![2, 2].exists_one(x, x == 2)",
        "[1, 2, 3].map(x, x * 2) == [2, 4, 6]",
        "[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]",
        "[1, 2, 3].filter(x, x != 2) == [1, 3]",
        "{'a': 1}.all(k, k == 'a') && {'a': 1}.map(k, k) == ['a']",
        "[1, 2].all(x, [3, 4].all(y, x < y))",
        "[[1], [2]].all(x, x.all(x, x > 0))",
        "[1, 2].all(i, v, v == i + 1) && {'a': 1}.exists(k, v, k == 'a' && v == 1)",
        "['a', 'b'].existsOne(i, v, i == 1 && v == 'b')",
        "[1, 2].transformList(i, v, i + v) == [1, 3]",
        "[1, 2].transformList(i, v, i > 0, v) == [2]",
        "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
        "['a'].transformMapEntry(i, v, {v: i}) == {'a': 0}",
        "cel.bind(x, 2, x * x) == 4",
        "cel.bind(x, 1 / 0, true)",
        "[3, 1, 2].sortBy(x, -x) == [3, 2, 1]",
        "has(any.name) && !has(any.other) && !has({'a': 1}.b)",
    ]);
}

#[test]
fn declared_values_are_read_by_their_declaration() {
    check_all(&[
        "self.name == 'web' && self.replicas + 1 == 4",
        "self.ratio == 2.0 && type(self.ratio) == double",
        "self.when.getFullYear() == 2026 && self.when.getMilliseconds() == 500",
        "self.day == timestamp('2026-01-02T00:00:00Z')",
        "self.every == duration('90m') && self.every.getHours() == 1",
        "self.blob == b'abc'",
        "type(self.port) == string && self.port == 'http'",
        "self.labels.a == '1' && self.labels['b'] == '2' && size(self.labels) == 2",
        "self.items.all(i, i.port > 0) && self.items[0].name == 'x'",
        "self.x__dash__y == 'dashed' && self.__namespace__ == 'ns'",
        "has(self.name) && !has(self.missing)",
        "self.tags == ['a', 'b'] && self.tags + ['a', 'c'] == ['b', 'a', 'c']",
        "self.__null__ == null",
        "self.?missing.orValue('none') == 'none' && self.?name.orValue('none') == 'web'",
        "self.labels[?'z'].orValue('none') == 'none' && self.labels.?a.hasValue()",
        "self.items.map(i, i.name) == ['x', 'y']",
    ]);
    check_fails(&[("self.missing == 'x'", "no such key: missing")]);
}

#[test]
fn strings_have_upstreams_functions() {
    check_all(&[
        "'hello'.contains('ell') && 'hello'.startsWith('he') && 'hello'.endsWith('lo')",
        "'hello'.matches('^h.*o$') && matches('abc', 'b')",
        "'tacocat'.charAt(3) == 'o' && 'abc'.charAt(3) == ''",
        "'hello'.indexOf('l') == 2 && 'hello'.lastIndexOf('l') == 3 && 'hello'.indexOf('l', 3) == 3",
        "'hello'.indexOf('z') == -1 && ''.indexOf('') == 0",
        "'HeLLo'.lowerAscii() == 'hello' && 'hello'.upperAscii() == 'HELLO'",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'ab'.split('') == ['a', 'b']",
        "['a', 'b'].join('-') == 'a-b' && ['a', 'b'].join() == 'ab'",
        "'hello'.replace('l', 'L') == 'heLLo' && 'hello'.replace('l', 'L', 1) == 'heLlo'",
        "'tacocat'.substring(4) == 'cat' && 'tacocat'.substring(0, 4) == 'taco'",
        "'  x '.trim() == 'x' && strings.quote('a\"b') == '\"a\\\\\"b\"'",
        "'%s is %d and %.2f'.format(['x', dyn(5), 1.5]) == 'x is 5 and 1.50'",
        "'%x %X %o %b %e %%'.format([dyn(255), 'ab', 8, 5, 1000.0]) == 'ff 6162 10 101 1.000000e+03 %'",
        "'%s %s'.format([dyn([dyn(1), 'a']), {'k': true}]) == '[1, a] {k: true}'",
        "'abc 123'.find('[0-9]+') == '123' && 'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b2'.findAll('[0-9]', 1) == ['1']",
        "size('🎈x') == 2",
    ]);
}

#[test]
fn conversions_read_and_print() {
    check_all(&[
        "int('5') == 5 && int(5.9) == 5 && int(timestamp('1970-01-01T00:00:10Z')) == 10",
        "uint('5') == 5u && double('1.5') == 1.5 && bool('true')",
        "string(1.5) == '1.5' && string(1) == '1' && string(true) == 'true' && string(1e100) == '1e+100'",
        "string(duration('1h30m1.5s')) == '5401.5s'",
        "string(timestamp('2026-01-02T03:04:05+01:00')) == '2026-01-02T02:04:05Z'",
        "bytes('abc') == b'abc' && string(b'abc') == 'abc'",
        "timestamp('2026-01-01T00:00:00Z') + duration('24h') == timestamp('2026-01-02T00:00:00Z')",
        "timestamp('2026-01-02T00:00:00Z') - timestamp('2026-01-01T00:00:00Z') == duration('86400s')",
        "timestamp('2026-01-01T23:30:00Z').getDate('+01:00') == 2 && timestamp('2026-03-01T00:00:00Z').getDayOfYear() == 59",
        "timestamp('2026-11-15T00:00:00Z').getDayOfWeek() == 0 && timestamp('2026-11-15T00:00:00Z').getMonth() == 10",
    ]);
}

#[test]
fn kubernetes_libraries_work() {
    check_all(&[
        "[1, 2, 3].sum() == 6 && [1.5, 2.5].sum() == 4.0 && [3, 1].min() == 1 && ['a', 'c'].max() == 'c'",
        "[1, 2].isSorted() && ![2, 1].isSorted() && [1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2",
        "sets.contains([1, 2, 3], [2]) && sets.intersects([1], [1, 2]) && sets.equivalent([1, 2], [2, 1, 1])",
        "[1, 2, 3].slice(1, 3) == [2, 3] && [[1], [2]].flatten() == [1, 2] && [1, 1, 2].distinct() == [1, 2]",
        "[2, 1].sort() == [1, 2] && [1, 2].reverse() == [2, 1] && lists.range(3) == [0, 1, 2]",
        "[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && ![].first().hasValue()",
        "quantity('1Gi').isGreaterThan(quantity('1000M')) && quantity('50k').add(20).asInteger() == 50020",
        "quantity('1.5').asApproximateFloat() == 1.5 && !quantity('1.5').isInteger() && quantity('-1').sign() == -1",
        "isQuantity('1Gi') && !isQuantity('200K') && quantity('1000m') == quantity('1')",
        "quantity('200M').compareTo(quantity('0.2G')) == 0 && quantity('50Ki').sub(quantity('1Ki')).compareTo(quantity('49Ki')) == 0",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
        "semver('v1.2', true) == semver('1.2.0') && isSemver('1.2.3') && !isSemver('1.2') && semver('1.2.3').minor() == 2",
        "url('https://example.com:80/a b?k=v&k=w').getHostname() == 'example.com'",
        "url('https://example.com:80/p').getPort() == '80' && url('https://example.com:80/p').getHost() == 'example.com:80'",
        "url('https://a/b?k=v&k=w').getQuery()['k'] == ['v', 'w'] && url('/path with space').getEscapedPath() == '/path%20with%20space'",
        "isURL('https://example.com') && !isURL('no url') && url('https://x/').getScheme() == 'https'",
        "ip('127.0.0.1').isLoopback() && ip('::1').family() == 6 && isIP('1.2.3.4') && !isIP('1.2.3')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
        "cidr('10.0.0.0/8').prefixLength() == 8 && cidr('10.0.0.0/8').ip() == ip('10.0.0.0') && isCIDR('::/0')",
        "ip.isCanonical('127.0.0.1') && !ip.isCanonical('2001:DB8::1')",
        "!format.dns1123Label().validate('my-label').hasValue() && format.named('dns1123Label').value().validate('X').hasValue()",
        "!format.named('nothing').hasValue() && !format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
    ]);
    check_fails(&[
        (
            "quantity('x').isInteger()",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            "quantity('1.5').asInteger() == 1",
            "cannot convert value to integer",
        ),
    ]);
}

#[test]
fn optionals_carry_absence_along() {
    check_all(&[
        "optional.of(1).hasValue() && !optional.none().hasValue() && optional.of(1).value() == 1",
        "optional.none().or(optional.of(2)).value() == 2 && optional.of(1).orValue(3) == 1",
        "optional.of(2).optMap(x, x * 2).value() == 4 && !optional.none().optMap(x, x).hasValue()",
        "optional.of(2).optFlatMap(x, x > 1 ? optional.of(x) : optional.none()).hasValue()",
        "[?optional.of(1), ?optional.none(), 2] == [1, 2] && {?'a': optional.none(), 'b': 1} == {'b': 1}",
        "any.?labels.?zz.orValue('q') == 'q' && any.?labels.a.orValue('q') == '1'",
        "!optional.ofNonZeroValue(0).hasValue() && optional.ofNonZeroValue('a').hasValue()",
        "[1, 2][?5].orValue(0) == 0 && optional.of({'a': 1})[?'a'].value() == 1",
    ]);
}

#[test]
fn wrong_expressions_are_refused_with_their_place() {
    check_refused(&[
        (
            "nothing > 1",
            "ERROR: <input>:1:1: undeclared reference to 'nothing' (in container '')\n | nothing > 1\n | ^",
        ),
        (
            "self.nothing > 1",
            "ERROR: <input>:1:5: undefined field 'nothing'\n | self.nothing > 1\n | ....^",
        ),
        (
            "self.replicas > 'a'",
            "ERROR: <input>:1:15: found no matching overload for '_>_' applied to '(int, string)'\n | self.replicas > 'a'\n | ..............^",
        ),
        (
            "self.name.contains(1)",
            "ERROR: <input>:1:19: found no matching overload for 'contains' applied to 'string.(int)'\n | self.name.contains(1)\n | ..................^",
        ),
        (
            "what(1)",
            "ERROR: <input>:1:5: undeclared reference to 'what' (in container '')\n | what(1)\n | ....^",
        ),
        (
            "[1, 'a'] == []",
            "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a'] == []\n | ....^",
        ),
        (
            "self.name.first",
            "ERROR: <input>:1:10: type 'string' does not support field selection\n | self.name.first\n | .........^",
        ),
        (
            "self.replicas >",
            "ERROR: <input>:1:16: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | self.replicas >\n | ...............^",
        ),
        (
            "'a'.matches('[')",
            "ERROR: <input>:1:13: invalid matches argument\n | 'a'.matches('[')\n | ............^",
        ),
        (
            "duration('x') == duration('1s')",
            "ERROR: <input>:1:10: invalid duration argument\n | duration('x') == duration('1s')\n | .........^",
        ),
        (
            "has(self)",
            "ERROR: <input>:1:5: invalid argument to has() macro\n | has(self)\n | ....^",
        ),
        (
            "1.all(x, true)",
            "ERROR: <input>:1:6: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)\n | 1.all(x, true)\n | .....^",
        ),
    ]);
}

#[test]
fn hostile_expressions_end() {
    let deep = format!("{}1{}", "(".repeat(5_000), ")".repeat(5_000));
    let error = environment().compile(&deep).expect_err("too deep");
    assert!(
        error.to_string().contains("recursion limit exceeded"),
        "{error}"
    );
    let minus = format!("{}1", "- ".repeat(5_000));
    assert!(environment().compile(&minus).is_ok(), "signs cancel out");
    let sum = format!("1{}", " + 1".repeat(5_000));
    assert!(environment().compile(&sum).is_err(), "a long sum is deep");
    let and = format!("true{}", " && true".repeat(5_000));
    assert!(
        environment().compile(&and).is_ok(),
        "a chain of && is balanced"
    );
    let unclosed = "'".repeat(3);
    assert!(environment().compile(&unclosed).is_err());
    assert!(environment().compile("").is_err());
    assert!(environment().compile(&"x".repeat(200_000)).is_err());
}
