//! Policies that are written as text: CEL and Rego. What they may say, and that none of them can harm
//! whoever runs it.

use muster_policy::cel::{CelPolicy, Conditions};
use muster_policy::code::Code;
use muster_policy::rego::{Owner, RegoPolicy};
use muster_policy::{Evaluator, LoadError, Outcome, Request, Verdict};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const TIME: Duration = Duration::from_secs(2);
/// How long a test waits before it says that nothing stopped a policy. On a busy machine a thread may get its
/// turn long after its time.
const HANG: Duration = Duration::from_secs(120);

fn request() -> Request {
    let container = |name: &str, image: &str| {
        json!({"name": name, "image": image, "ports": [{"containerPort": 80}],
            "resources": {"limits": {"memory": "1Gi", "cpu": "500m"}},
            "securityContext": {"privileged": name == "bad", "runAsUser": 1000}})
    };
    Request::create(
        "pods",
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "n", "labels": {"app": "web"}},
            "spec": {"containers": [container("good", "r.io/a:1.2.3"), container("bad", "b")],
                "nothing": null, "ratio": 1.5, "one": 1.0},
        }),
    )
}

fn cel(expression: &str) -> Result<Verdict, LoadError> {
    let settings = json!({"validations": [{"expression": expression}]});
    Ok(CelPolicy::load(&settings, TIME)?.judge(&request()))
}

fn rego(body: &str) -> Result<Verdict, LoadError> {
    let source = format!("package p\nimport rego.v1\n{body}");
    let policy = RegoPolicy::load(&source, &json!({"most": 1}), TIME, Owner::default())?;
    Ok(policy.judge(&request()))
}

#[test]
fn expressions_mean_what_they_mean_in_kubernetes() {
    for expression in [
        // Values.
        "object.spec.one == 1 && object.spec.ratio > 1 && 1 == 1.0 && 1u == 1",
        "object.spec.nothing == null && has(object.spec.nothing) && !has(object.spec.missing)",
        "!has(object.spec.nothing.deeper)",
        "oldObject == null && request.operation == 'CREATE' && request.kind.kind == 'Pod'",
        "request.namespace == 'n' && request.resource.resource == 'pods' && !request.dryRun",
        "request.object == object && request.userInfo.groups == [] && request.name == 'p'",
        "'app' in object.metadata.labels && !('x' in object.metadata.labels) && 2 in [1, 2]",
        "object.metadata.labels['app'] == 'web' && object.spec.containers[0].name == 'good'",
        "type(1) == int && type('') == string && type(object) == map && type(null) == null_type",
        "-7 / 2 == -3 && -7 % 2 == -1 && 7.0 / 2.0 == 3.5 && -(1) == -1",
        "'a' + 'b' == 'ab' && [1] + [2] == [1, 2] && {'a': 1} == {'a': 1.0}",
        "1 / 0 == 1 || true",
        "!(1 / 0 == 1 && false)",
        "'ab' < 'b' && 1 < 2u && 1.5 >= 1 && true != false && 'a' != 1",
        // Macros.
        "object.spec.containers.all(c, c.securityContext.runAsUser == 1000)",
        "object.spec.containers.exists(c, c.name == 'bad') && [1, 2].exists_one(x, x == 2)",
        "object.spec.containers.map(c, c.name) == ['good', 'bad']",
        "[1, 2, 3].map(x, x > 1, x * 2) == [4, 6] && [1, 2, 3].filter(x, x > 2) == [3]",
        "object.metadata.labels.all(key, key == 'app') && [1].all(x, [x].all(x, x == 1))",
        "[true, false].exists(x, 1 / (x ? 0 : 1) == 1)",
        "[5, 6].transformList(i, v, i + v) == [5, 7] && {'a': 1}.all(k, v, k == 'a' && v == 1)",
        "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2} && cel.bind(x, 2, x * x) == 4",
        // Optionals.
        "object.?spec.?missing.orValue('x') == 'x' && object.?metadata.name.hasValue()",
        "object.spec[?'ratio'].optMap(x, x * 2.0).value() == 3.0 && [1][?5] == optional.none()",
        "[?optional.none(), ?optional.of(1)] == [1] && {?'a': optional.none()} == {}",
        // Texts.
        "'a,b'.split(',') == ['a', 'b'] && 'abc'.split('') == ['a', 'b', 'c']",
        "'a,b,c'.split(',', 2) == ['a', 'b,c'] && ['a', 'b'].join('-') == 'a-b'",
        "'aB'.lowerAscii() == 'ab' && 'aB'.upperAscii() == 'AB' && ' a '.trim() == 'a'",
        "'aaa'.replace('a', 'b') == 'bbb' && 'aaa'.replace('a', 'b', 2) == 'bba'",
        "'häuser'.substring(1, 3) == 'äu' && 'häuser'.substring(4) == 'er'",
        "'häuser'.indexOf('u') == 2 && 'abab'.lastIndexOf('ab') == 2 && 'a'.indexOf('x') == -1",
        "'abab'.indexOf('ab', 1) == 2 && 'abab'.lastIndexOf('ab', 1) == 0",
        "'äb'.charAt(0) == 'ä' && 'ab'.charAt(2) == '' && 'ab'.reverse() == 'ba'",
        "'abc'.startsWith('a') && 'abc'.endsWith('c') && 'abc'.contains('b') && size('ä') == 1",
        "'a1'.matches('^[a-z][0-9]$') && matches('xay', 'a') && 'A'.matches('(?i)a')",
        "'a12b3'.find('[0-9]+') == '12' && 'a12b3'.findAll('[0-9]+') == ['12', '3']",
        "'a1b2'.findAll('[0-9]', 1) == ['1'] && 'x'.find('y') == ''",
        "'%s has %d (%.1f%%)'.format(['a', 2, 1.25]) == 'a has 2 (1.2%)'",
        "'%s %s'.format([[1, 'a'], {'k': true}]) == '[1, a] {k: true}'",
        "string(1) + string(true) + string(1.5) == '1true1.5' && int('7') == 7 && int(1.9) == 1",
        "double('1.5') == 1.5 && uint(1) == 1u && bool('true') && bytes('a') == b'a'",
        "base64.encode(b'ab') == 'YWI=' && base64.decode('YWI=') == b'ab' && dyn(1) == 1",
        // Lists, sets and numbers.
        "[1, 2].isSorted() && ![2, 1].isSorted() && [1, 2].sum() == 3 && [].sum() == 0",
        "[1, 2].min() == 1 && [1, 2].max() == 2 && [1, 2, 1].indexOf(1) == 0",
        "[1, 2, 1].lastIndexOf(1) == 2 && [1, 2, 3].slice(1, 2) == [2] && [1, 1].distinct() == [1]",
        "[2, 1].sort() == [1, 2] && [[1], [2]].flatten() == [1, 2] && lists.range(2) == [0, 1]",
        "sets.contains([1, 2], [1]) && sets.equivalent([1, 1], [1]) && sets.intersects([1], [1, 2])",
        "!sets.contains([1], [2]) && math.greatest(1, 2) == 2 && math.least([3, 2]) == 2",
        // Quantities.
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('500m').isLessThan(quantity('1'))",
        "quantity('1k').compareTo(quantity('1000')) == 0 && quantity('1') == quantity('1000m')",
        "quantity('1').add(quantity('1')) == quantity('2') && quantity('3').sub(1) == quantity('2')",
        "quantity('-1').sign() == -1 && quantity('2k').asInteger() == 2000 && isQuantity('1Mi')",
        "!isQuantity('x') && !quantity('1m').isInteger() && quantity('1m').asApproximateFloat() == 0.001",
        // Addresses.
        "url('https://u@h:80/a%20b?q=1&q=2').getHost() == 'h:80' && isURL('/a') && !isURL('a')",
        "url('https://h:80/a?q=1&q=2').getQuery() == {'q': ['1', '2']}",
        "url('https://[::1]:80/a').getHostname() == '::1' && url('https://h:8/a').getPort() == '8'",
        "url('https://h/a').getScheme() == 'https' && url('https://h/a').getEscapedPath() == '/a'",
        "ip('10.0.0.1').family() == 4 && isIP('::1') && !isIP('1.2.3') && ip('127.0.0.1').isLoopback()",
        "ip.isCanonical('::1') && !ip.isCanonical('0:0::1') && string(ip('::1')) == '::1'",
        "cidr('10.0.0.0/8').containsIP('10.1.1.1') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('10.1.0.0/8').masked() == cidr('10.0.0.0/8')",
        "cidr('::/0').prefixLength() == 0 && isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0/33')",
        "ip('8.8.8.8').isGlobalUnicast() && ip('169.254.1.1').isLinkLocalUnicast() && cidr('10.0.0.0/8').ip() == ip('10.0.0.0')",
        // Versions.
        "semver('1.2.3').major() == 1 && semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('1.0.0')",
        "semver('v1.2', true).minor() == 2 && !isSemver('v1.2') && semver('1.0.0').compareTo(semver('1.0.0')) == 0",
    ] {
        let verdict = cel(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        assert_eq!(verdict.message, "", "{expression}");
        assert_eq!(verdict.outcome, Outcome::Pass, "{expression}");
    }
}

#[test]
fn what_an_expression_cannot_say_is_an_error() {
    for (expression, message) in [
        (
            "object.spec.missing == 1",
            "validations[0]: no such key: missing",
        ),
        (
            "has(object.missing.deeper)",
            "validations[0]: no such key: missing",
        ),
        (
            "object.spec.containers[9] == 1",
            "validations[0]: index out of bounds: 9",
        ),
        ("'abc'[0] == 'a'", "validations[0]: string has no part 0"),
        (
            "object.spec.ratio + 1 == 2",
            "validations[0]: there is no double + int",
        ),
        ("1 / 0 == 1", "validations[0]: division by zero"),
        (
            "9223372036854775807 + 1 > 0",
            "validations[0]: a number is too large",
        ),
        ("1", "validations[0]: it must yield bool, and yields int"),
        (
            "'a' < 1",
            "validations[0]: string and int cannot be compared",
        ),
        (
            "{'a': 1, 'a': 2} == {}",
            "validations[0]: the key a is there twice",
        ),
        (
            "quantity('x') == quantity('1')",
            "validations[0]: \"x\" is no quantity",
        ),
        (
            "'a'.startsWith(1)",
            "validations[0]: there is no `startsWith` for (string, int)",
        ),
        ("1 / 0 == 1 && true", "validations[0]: division by zero"),
        (
            "[1, 0].all(x, 1 / x == 1)",
            "validations[0]: division by zero",
        ),
    ] {
        let verdict = cel(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        assert_eq!(verdict, Verdict::error(message), "{expression}");
    }
}

#[test]
fn what_there_is_not_does_not_load() {
    for (expression, part) in [
        ("nothing == 1", "column 1: there is no `nothing`"),
        (
            "true && nothing()",
            "column 16: there is no function `nothing()`",
        ),
        ("'a'.nothing()", "there is no function `.nothing()`"),
        ("timestamp('x') == 1", "there is no function `timestamp()`"),
        ("'a'.startsWith()", "does not take 0 arguments"),
        (
            "authorizer.path('/').check('get').allowed()",
            "`authorizer` cannot be used",
        ),
        ("params.x == 1", "`params` cannot be used"),
        ("namespaceObject.x == 1", "`namespaceObject` cannot be used"),
        ("variables.x == 1", "there is no variable `x` yet"),
        ("'a'.matches('(')", "the pattern cannot be used"),
        (
            "'a'.matches('(a{1000}){1000}')",
            "the pattern cannot be used",
        ),
        ("1 +", "line 1, column"),
        ("", "line"),
        ("[1].all(1, true)", "a macro binds a name"),
        ("has(object)", "`has` asks for a field"),
        ("Pod{name: 'a'} == 1", "there is no message type"),
    ] {
        let told = cel(expression).unwrap_err().to_string();
        assert!(told.contains(part), "{expression}: {told}");
    }
}

#[test]
fn texts_that_are_made_to_break_the_parser_do_not() {
    for expression in [
        "(".repeat(8_000),
        "[".repeat(8_000),
        format!("{}true{}", "(".repeat(5_000), ")".repeat(5_000)),
        "!".repeat(10_000) + "true",
        "-".repeat(10_000) + "1 == 1",
        format!("true{}", " ? true : true".repeat(1_000)),
        format!("1{} == 1", " + 1".repeat(3_000)),
        format!("true{}", " && true".repeat(1_500)),
        format!("object{}", ".a".repeat(7_000)),
        format!("[1]{}", ".map(x, x)".repeat(1_000)),
        "a".repeat(20_000),
        "\u{0}\u{ffff}'".into(),
    ] {
        let start = Instant::now();
        // It may be one or none, but there is an answer.
        let _ = cel(&expression);
        let took = start.elapsed();
        assert!(took < HANG, "{took:?}: {:.40}", expression);
    }
    // Variables that refer to each other are as deep as all of them.
    let variables: Vec<Value> = (0..100)
        .map(|i| match i {
            0 => json!({"name": "v0", "expression": "1"}),
            i => json!({"name": format!("v{i}"), "expression": format!("((variables.v{} + 1) + 1) + 1", i - 1)}),
        })
        .collect();
    let settings =
        json!({"variables": variables, "validations": [{"expression": "variables.v99 > 0"}]});
    let told = CelPolicy::load(&settings, TIME).unwrap_err().to_string();
    assert!(told.contains("nested too deeply"), "{told}");
}

#[test]
fn no_expression_takes_more_than_it_may() {
    let loops = |depth: usize| {
        let range = "lists.range(1000)";
        let inner = (0..depth).fold("true".to_owned(), |body, i| {
            format!("{range}.all(x{i}, {body})")
        });
        format!("{inner} || true")
    };
    let doubled = (0..20).fold("a".to_owned(), |body, _| {
        format!("cel.bind(a, a + a, {body})")
    });
    let doubled = |from: &str| format!("cel.bind(a, {from}, {doubled}).size() > 0 || true");
    let shared = (0..40).fold("a == a".to_owned(), |body, _| {
        format!("cel.bind(a, [a, a], {body})")
    });
    for expression in [
        loops(4),
        doubled("'0123456789abcdef'.replace('', '0123456789abcdef')"),
        doubled("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"),
        format!("cel.bind(a, [1], {shared}) || true"),
        "lists.range(9000000000).size() > 0 || true".into(),
        "lists.range(100000).all(i, 'a'.replace('', '0123456789').replace('', '0123456789').replace('', '0123456789').matches('a' + string(i)) || true)".into(),
        "lists.range(3000).distinct().size() > 0 && lists.range(9000).distinct().size() > 0".into(),
    ] {
        let start = Instant::now();
        let verdict = cel(&expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        let took = start.elapsed();
        assert_eq!(verdict.outcome, Outcome::Error, "{expression}");
        let cause = ["is too expensive", "needs more than 64 MiB", "took longer than 2s"];
        assert!(cause.iter().any(|cause| verdict.message.ends_with(cause)), "{verdict:?}");
        assert!(took < HANG, "{took:?}: {expression}");
    }
    let settings = json!({"validations": [{"expression": loops(4)}]});
    let late = CelPolicy::load(&settings, Duration::ZERO)
        .unwrap()
        .judge(&request());
    assert_eq!(late, Verdict::error("validations[0]: took longer than 0ns"));
}

#[test]
fn validations_tell_what_is_wrong_in_order() {
    let settings = json!({
        "variables": [
            {"name": "names", "expression": "object.spec.containers.map(c, c.name)"},
            {"name": "bad", "expression": "variables.names.filter(n, n == 'bad')"},
            {"name": "never", "expression": "1 / 0"},
        ],
        "validations": [
            {"expression": "variables.bad.size() == 0", "message": "unused",
                "messageExpression": "'bad: ' + variables.bad.join(', ')", "reason": "Forbidden"},
            {"expression": "true", "message": "never said"},
            {"expression": "variables.names.size() > 5"},
            {"expression": "false", "message": " said ", "messageExpression": "1"},
        ],
    });
    let verdict = CelPolicy::load(&settings, TIME).unwrap().judge(&request());
    let expected = "bad: bad; failed expression: variables.names.size() > 5; said";
    assert_eq!(verdict, Verdict::fail(expected));
    let settings = json!({"validations": [
        {"expression": "false", "messageExpression": "'x'.replace('', 'ab').replace('', '0123456789abcdef').replace('', '0123456789abcdef').replace('', '0123456789abcdef')"}]});
    let verdict = CelPolicy::load(&settings, TIME).unwrap().judge(&request());
    assert_eq!(verdict.outcome, Outcome::Fail);
    assert!(verdict.message.ends_with('…') && verdict.message.len() < 4200);
}

#[test]
fn settings_that_are_none_are_refused() {
    for (settings, part) in [
        (json!({}), "missing field `validations`"),
        (json!({"validations": []}), "there are no validations"),
        (
            json!({"validations": [{"expression": "true"}], "paramKind": {}}),
            "paramKind",
        ),
        (
            json!({"validations": [{"expression": "true"}], "x": 1}),
            "unknown field `x`",
        ),
        (
            json!({"validations": [{"expression": "true", "x": 1}]}),
            "unknown field `x`",
        ),
        (
            json!({"validations": [{"expression": 1}]}),
            "expected a string",
        ),
        (json!(null), "invalid type"),
    ] {
        let error = CelPolicy::load(&settings, TIME).unwrap_err();
        assert!(
            matches!(error, LoadError::Settings(_)),
            "{settings}: {error}"
        );
        assert!(error.to_string().contains(part), "{settings}: {error}");
    }
    for name in ["a-b", "", "a"] {
        let variable = json!({"name": name, "expression": "1"});
        let settings =
            json!({"variables": [variable, variable], "validations": [{"expression": "true"}]});
        assert!(CelPolicy::load(&settings, TIME).is_err(), "{name}");
    }
}

#[test]
fn conditions_hold_if_none_fails_and_all_can_be_judged() {
    let (yes, no, broken) = ("true", "false", "1 / 0 == 1");
    let told = "the match condition \"c1\": division by zero";
    for (conditions, expected) in [
        (&[][..], Ok(true)),
        (&[yes], Ok(true)),
        (&[yes, no], Ok(false)),
        (&[no, broken], Ok(false)),
        (&[yes, broken, no], Ok(false)),
        (&[yes, broken], Err(told)),
        (&[yes, broken, broken], Err(told)),
        (&["request.userInfo.username != 'admin'"], Ok(true)),
        (&["!('system:nodes' in request.userInfo.groups)"], Ok(true)),
        (
            &["1"],
            Err("the match condition \"c0\": it must yield bool, and yields int"),
        ),
    ] {
        let named = conditions.iter().enumerate();
        let written: Vec<_> = named
            .map(|(i, text)| (format!("c{i}"), text.to_string()))
            .collect();
        let compiled = Conditions::compile(&written).unwrap();
        assert_eq!(compiled.is_empty(), conditions.is_empty());
        let held = compiled.hold(&request());
        assert_eq!(held, expected.map_err(str::to_owned), "{conditions:?}");
    }
    assert!(Conditions::default().is_empty());
    let written = [("c".to_owned(), "true &&\n nobody".to_owned())];
    let expected =
        "the match condition \"c\" cannot be used: line 2, column 2: there is no `nobody`";
    let error = Conditions::compile(&written).unwrap_err();
    assert_eq!(error, LoadError::Source(expected.into()));
}

#[test]
fn rules_in_rego_decide() {
    for (body, expected) in [
        ("deny contains \"no\" if false", Verdict::pass()),
        ("deny contains \"no\" if true", Verdict::fail("no")),
        ("deny := [\"b\", \"a\"]", Verdict::fail("a; b")),
        (
            "deny if input.request.name == \"p\"",
            Verdict::fail("the object is refused"),
        ),
        (
            "violation contains {\"msg\": \"m\", \"details\": {}} if true",
            Verdict::fail("m"),
        ),
        (
            "violation contains {\"message\": \"m\"} if true\ndeny contains \"d\"",
            Verdict::fail("d; m"),
        ),
        (
            "deny contains {\"x\": 1} if true",
            Verdict::fail("{\"x\": 1}"),
        ),
        (
            "warn contains \"old\"\ndeny contains \"no\" if false",
            Verdict::pass().with_warnings(["old".into()]),
        ),
        (
            "deny contains msg if { some c in input.review.object.spec.containers\n c.securityContext.privileged\n msg := sprintf(\"%s is privileged (%d, %v, %q)\", [c.name, 1, [\"a\"], \"b\"]) }",
            Verdict::fail("bad is privileged (1, [\"a\"], \"b\")"),
        ),
        (
            "deny contains \"many\" if count(input.request.object.spec.containers) > input.parameters.most",
            Verdict::fail("many"),
        ),
        // An error of a function is an undefined value.
        (
            "deny contains \"no\" if to_number(\"x\") > 0",
            Verdict::pass(),
        ),
        (
            "deny contains \"no\" if not to_number(\"x\")",
            Verdict::fail("no"),
        ),
        (
            "deny contains m if m := concat(\",\", [replace(\"aa\", \"a\", \"b\"), json.marshal({\"a\": [1]}), hex.encode(\"a\"), base64.encode(\"ab\")])",
            Verdict::fail("bb,{\"a\":[1]},61,YWI="),
        ),
        (
            "deny contains m if m := sprintf(\"%v\", [[numbers.range(1, 3), split(\"a-b\", \"-\"), array.concat([1], [2]), regex.replace(\"abc\", \"b\", \"x\"), format_int(255, 16)]])",
            Verdict::fail("[[1, 2, 3], [\"a\", \"b\"], [1, 2], \"axc\", \"ff\"]"),
        ),
    ] {
        let verdict = rego(body).unwrap_or_else(|error| panic!("{body}: {error}"));
        assert_eq!(verdict, expected, "{body}");
    }
    let old = "package old\ndeny[msg] { msg := \"no\" }";
    let verdict = RegoPolicy::load(old, &json!({}), TIME, Owner::default())
        .unwrap()
        .judge(&request());
    assert_eq!(verdict, Verdict::fail("no"));
}

#[test]
fn modules_that_cannot_be_run_do_not_load() {
    let chain: String = (0..400)
        .map(|i| format!("f{i}(x) := f{}(x)\n", i + 1))
        .collect();
    for (body, part) in [
        ("deny contains", "line"),
        (
            "allow := true",
            "none of the rules `deny`, `violation` and `warn`",
        ),
        ("deny(x) := true", "none of the rules"),
        ("deny contains nothing(1)", "there is no function `nothing`"),
        (
            "deny contains rand.intn(\"a\", 5)",
            "`rand.intn` cannot be used",
        ),
        (
            "deny contains opa.runtime()",
            "`opa.runtime` cannot be used",
        ),
        (
            "deny contains time.now_ns()",
            "`time.now_ns` cannot be used",
        ),
        ("deny contains http.send({})", "`http.send` cannot be used"),
        (
            "deny contains uuid.rfc4122(\"\")",
            "`uuid.rfc4122` cannot be used",
        ),
        (
            "import data.lib\ndeny contains \"a\"",
            "`data.lib` cannot be imported",
        ),
        (
            "f(x) := f(x + 1)\ndeny contains f(1)",
            "the function `f` calls itself",
        ),
        (
            "f(x) := g(x)\ng(x) := data.p.f(x)\ndeny contains f(1)",
            "calls itself",
        ),
        (
            "f(x) := data[\"p\"].f(x)\ndeny contains f(1)",
            "calls itself",
        ),
        (
            &format!("{chain}f400(x) := x\ndeny contains f0(1)"),
            "nested too deeply",
        ),
    ] {
        let told = rego(body).unwrap_err().to_string();
        assert!(told.contains(part), "{body:.60}: {told}");
    }
    for source in [
        "(".repeat(100_000),
        format!(
            "package p\nimport rego.v1\ndeny contains {}1{}",
            "[".repeat(4_000),
            "]".repeat(4_000)
        ),
        format!(
            "package p\nimport rego.v1\ndeny contains 1{}",
            " + 1".repeat(1_500)
        ),
        format!(
            "package p\nimport rego.v1\ndeny contains x if {{ x := {}1 }}",
            "-".repeat(4_000)
        ),
        format!(
            "package p\nimport rego.v1\ndeny contains input{}",
            ".a".repeat(3_000)
        ),
        "#".repeat(300_000),
        String::new(),
    ] {
        if let Ok(policy) = RegoPolicy::load(&source, &json!({}), TIME, Owner::default()) {
            let _ = policy.judge(&request());
        }
    }
}

#[test]
fn no_module_takes_more_than_it_may() {
    let doubled: String = (0..40)
        .map(|i| format!("s{} := concat(\"\", [s{i}, s{i}])\n", i + 1))
        .collect();
    let listed: String = (0..40)
        .map(|i| format!("s{} := array.concat(s{i}, s{i})\n", i + 1))
        .collect();
    let told: String = (0..40)
        .map(|i| format!("s{} := sprintf(\"%s%s\", [s{i}, s{i}])\n", i + 1))
        .collect();
    let deep: String = (0..200)
        .map(|i| format!("f{i}(x) := f{}(x) + 1\n", i + 1))
        .collect();
    for (body, cause) in [
        (
            "deny contains 1 if { xs := numbers.range(1, 100000)\n some i in xs\n some j in xs\n i == j + 200000 }".to_owned(),
            "the policy took longer than 2s",
        ),
        ("deny contains 1 if count(numbers.range(1, 9000000000)) > 0".into(), "the policy needs more than 32 MiB"),
        ("deny contains 1 if not numbers.range(1, 9000000000)".into(), "the policy needs more than 32 MiB"),
        (format!("s0 := \"abcdefgh\"\n{doubled}deny contains 1 if count(s40) > 0"), "the policy needs more than 32 MiB"),
        (format!("s0 := [1]\n{listed}deny contains 1 if count(s40) > 0"), "the policy needs more than 32 MiB"),
        (format!("s0 := \"abcdefgh\"\n{told}deny contains 1 if count(s40) > 0"), "the policy needs more than 32 MiB"),
        ("a := b\nb := a\ndeny contains 1 if a".into(), ""),
    ] {
        let start = Instant::now();
        let verdict = rego(&body).unwrap_or_else(|error| panic!("{body}: {error}"));
        let took = start.elapsed();
        assert_eq!(verdict.outcome, Outcome::Error, "{body:.80}: {verdict:?}");
        assert!(verdict.message.contains(cause), "{body:.80}: {verdict:?}");
        assert!(took < HANG, "{took:?}: {body:.80}");
    }
    let verdict = rego(&format!(
        "{deep}f200(x) := x\ndeny contains sprintf(\"%d\", [f0(1)])"
    ));
    assert_eq!(verdict.unwrap(), Verdict::fail("201"));
    let verdict =
        rego("deny contains concat(\"\", [\"x\" | some i in numbers.range(1, 20000)])").unwrap();
    assert!(verdict.message.ends_with('…') && verdict.message.len() < 4200);
}

#[test]
fn the_same_object_is_always_judged_the_same() {
    let settings = json!({"validations": [
        {"expression": "false", "messageExpression": "'%s'.format([object])"},
        {"expression": "object.spec.containers.all(c, c.name == 'x')"}]});
    let policies: [Box<dyn Evaluator>; 2] = [
        Box::new(CelPolicy::load(&settings, TIME).unwrap()),
        Box::new(
            RegoPolicy::load(
                "package p\nimport rego.v1\ndeny contains m if { some k, v in input.request.object.spec.containers[_]\n m := sprintf(\"%v %v\", [k, v]) }",
                &json!({}),
                TIME,
                Owner::default(),
            )
            .unwrap(),
        ),
    ];
    for policy in &policies {
        let first = policy.judge(&request());
        assert_eq!(first.outcome, Outcome::Fail);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        assert_eq!(policy.judge(&request()), first);
                    }
                });
            }
        });
    }
}

#[test]
fn code_is_told_apart_by_its_content() {
    let validations = json!({"validations": [{"expression": "true"}]});
    for (bytes, expected) in [
        (&b"\0asm\x01\0\0\0"[..], Code::Wasm(b"\0asm\x01\0\0\0".to_vec())),
        (b"# why\n\npackage p\n", Code::Rego("# why\n\npackage p\n".into())),
        (b"validations:\n- expression: 'true'\n", Code::Cel(validations.clone())),
        (br#"{"validations": [{"expression": "true"}]}"#, Code::Cel(validations.clone())),
        (
            b"kind: ValidatingAdmissionPolicy\nspec:\n  failurePolicy: Fail\n  validations:\n  - expression: 'true'\n",
            Code::Cel(validations.clone()),
        ),
    ] {
        assert_eq!(Code::of(bytes.to_vec()).unwrap(), expected);
    }
    let laughs = "a: &a [x, x]\nb: &b [*a, *a]\nvalidations: [*b, *b]\n";
    for bytes in [
        b"".to_vec(),
        b"packages: 1".to_vec(),
        b"\xff\xfe".to_vec(),
        b"a: [".to_vec(),
        b"- 1".to_vec(),
        laughs.into(),
        vec![b' '; 2 * 1024 * 1024],
        "[".repeat(100_000).into_bytes(),
    ] {
        let error = Code::of(bytes).unwrap_err();
        assert!(matches!(error, LoadError::Module(_)), "{error}");
    }
}
