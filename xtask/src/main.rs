//! The project's tasks: `cargo xtask test` is what CI runs; the rest is for people.

mod bench;
mod compare;
mod dependencies;
mod fixture;
mod generate;
mod install;
mod peers;
mod run;
mod soak;
mod test;

use anyhow::{Result, bail};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <task>

  test              install what the tests need, check everything, run all tests
  check             formatting, lints, bans and licences: the quick part of `test`
  generate          rewrite the tables made from the real kube-apiserver
  generate --check  say whether they are fresh
  fixture [binary]  build what this version stores, for the tests of later upgrades
  soak [seconds]    the random tests for longer (600 each), with another seed every time
  fuzz [seconds]    fuzz every target (60 each)
  bench apiserver   speed and memory beside kube-apiserver and etcd
  bench audit       50 000 resources under 20 policies, beside a policy server asked for each of them;
                    --small to try it out, --resources N for another number
  bench hostile     attacks on a server, and what an honest client notices of them;
                    --muster FILE for another binary
  bench pages       the web pages of 10 000 workloads, beside the list they are made of
  bench pipeline    a registry of 1 000 images through all roles, and both queues; --small to try it out
  bench rego        200 policies in Rego, bound to kinds, and 10 000 resources of 12 kinds; --small to
                    try it out, --policies N and --resources N for other numbers
  bench rematch     10 000 stored bills of materials, matched again
  bench storage     reports of a large cluster beside a naive layout; --small to try it out,
                    --embedded to measure `muster up`
  bench workloads   a cluster of 2 000 namespaces and 50 000 pods, looked at from outside;
                    --namespaces N for a smaller one, --embedded in one process with it,
                    --together with all findings in one namespace
  bench scan [distribution|application|family...]
                    images beside Trivy and Syft
  compare trivy [case...]
                    the same images and the same data through the real Trivy and through ours
  compare opa       every row of the conformance suite of Rego, asked of the real OPA again
  peers             build the programs that ours is held against, once
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match task(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn task(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["test", filter @ ..] => test::all(filter),
        ["check"] => test::check(),
        ["generate"] => generate::builtin_tables(false),
        ["generate", "--check"] => generate::builtin_tables(true),
        ["fixture"] => fixture::build(None),
        ["fixture", binary] => fixture::build(Some(binary)),
        ["soak"] => soak::torture("600"),
        ["soak", seconds] => soak::torture(seconds),
        ["bench", "apiserver"] => bench::apiserver::run(),
        ["bench", "audit", options @ ..] => bench::audit::run(options),
        ["bench", "storage", options @ ..] => bench::storage::run(options),
        ["bench", "scan", parts @ ..] => bench::scan::run(parts),
        ["bench", "hostile", options @ ..] => bench::hostile::run(options),
        ["bench", "pages"] => bench::pages::run(),
        ["bench", "pipeline", options @ ..] => bench::pipeline::run(options),
        ["bench", "workloads", options @ ..] => bench::workloads::run(options),
        ["bench", "rego", options @ ..] => bench::rego::run(options),
        ["bench", "rematch"] => bench::rematch::run(),
        ["compare", "trivy", cases @ ..] => compare::trivy(cases),
        ["compare", "opa"] => compare::opa::run(),
        ["peers"] => peers::all(),
        ["fuzz"] => soak::fuzz("60"),
        ["fuzz", seconds] => soak::fuzz(seconds),
        [] | ["help" | "--help" | "-h"] => {
            eprint!("{HELP}");
            Ok(())
        }
        other => bail!("there is no task {:?}\n\n{HELP}", other.join(" ")),
    }
}
