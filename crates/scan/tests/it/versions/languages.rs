//! The versions of languages whose own tools are asked, and of one that has but a document.

use super::{hold, ordered, pairs};
use muster_scan::version;
use std::process::Command;

#[test]
fn ruby_versions_compare_as_rubygems_compares_them() {
    let script = "
STDIN.each_line do |line|
  left, right = line.split
  if Gem::Version.correct?(left) && Gem::Version.correct?(right)
    puts({-1 => '<', 0 => '=', 1 => '>'}[Gem::Version.new(left) <=> Gem::Version.new(right)])
  else
    puts 'none'
  end
end";
    let pieces = [
        ".0", ".1", ".10", ".a", ".rc1", "b2", ".pre", "-1", "-alpha", ".A", ".00", ".0.0", "x",
        ".beta.2", "..", "_",
    ];
    let endings = ["", ".0", ".a", ".0.0", "-1", ".pre", ".1", "a", ".0.a"];
    hold(
        Command::new("ruby").args(["-e", script]),
        &pairs(0x6e3, 20_000, &pieces, &endings),
        version::ruby::compare,
    );
}

#[test]
fn composer_versions_compare_as_composer_compares_them() {
    let library = "/usr/share/php/Composer/Semver/autoload.php";
    assert!(
        std::path::Path::new(library).exists(),
        "install the packages php-cli and php-composer-semver"
    );
    let script = format!(
        "require '{library}';
        $parser = new Composer\\Semver\\VersionParser();
        while (($line = fgets(STDIN)) !== false) {{
            [$left, $right] = explode(' ', trim($line));
            try {{
                $left = $parser->normalize($left);
                $right = $parser->normalize($right);
                $less = Composer\\Semver\\Comparator::lessThan($left, $right);
                $more = Composer\\Semver\\Comparator::greaterThan($left, $right);
                echo $less ? '<' : ($more ? '>' : '='), \"\\n\";
            }} catch (UnexpectedValueException $wrong) {{
                echo \"none\\n\";
            }}
        }}"
    );
    let pieces = [
        ".0", ".1", ".10", "-alpha1", "-beta.2", "-RC1", "-rc2", "-p1", "-patch2", "-dev",
        "-stable", "b1", "+build", "-alpha", "pl3", "-x",
    ];
    let endings = ["", ".0", "-RC1", "-alpha", "-p1", "-dev", "-beta2", ".1"];
    hold(
        Command::new("php").args(["-r", &script]),
        &pairs(0xc03, 20_000, &pieces, &endings),
        version::composer::compare,
    );
}

#[test]
fn go_versions_compare_as_go_compares_them() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write(
        "go.mod",
        "module compare\n\ngo 1.24\n\nrequire golang.org/x/mod v0.29.0\n",
    );
    write(
        "go.sum",
        "golang.org/x/mod v0.29.0 h1:HV8lRxZC4l2cr3Zq1LvtOsi/ThTgWnUk/y64QSs8GwA=\n\
         golang.org/x/mod v0.29.0/go.mod h1:NyhrlYXJ2H4eJiRy/WDBO6HMqZQ6q9nk4JzS3NuCK+w=\n",
    );
    write(
        "main.go",
        r#"package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/semver"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		pair := strings.Fields(lines.Text())
		left, right := "v"+pair[0], "v"+pair[1]
		if !semver.IsValid(left) || !semver.IsValid(right) {
			fmt.Println("none")
			continue
		}
		fmt.Println([]string{"<", "=", ">"}[semver.Compare(left, right)+1])
	}
}
"#,
    );
    let built = Command::new("go")
        .args(["build", "-o", "compare", "."])
        .current_dir(directory.path())
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-mod=mod")
        .status();
    assert!(built.expect("go runs").success());
    let pieces = [
        "-alpha",
        "-1",
        ".1",
        ".beta",
        "-rc.1",
        "+incompatible",
        "-0",
        ".x-y",
        "-a.b.c",
        ".10",
        "-0.20240101000000-abcdefabcdef",
        "-2",
    ];
    let endings = ["", "-0", "-a", ".1", "+incompatible", "-rc.2", "-1.2"];
    let mut pairs = pairs(0x60, 20_000, &pieces, &endings);
    // We read more than Go does: four numbers, zeros before a number, two builds, and less than
    // three numbers before a dash.
    let strict = |version: &String| {
        let release = version.split(['-', '+']).next().unwrap_or_default();
        let whole = release.split('.').count() == 3 || release == version.as_str();
        let build = version.split_once('+').map_or("", |(_, build)| build);
        whole && release.split('.').count() <= 3 && !build.contains('+')
    };
    pairs.retain(|(left, right)| strict(left) && strict(right));
    assert!(pairs.len() > 1000, "{}", pairs.len());
    hold(
        &mut Command::new(directory.path().join("compare")),
        &pairs,
        version::semantic::compare_go,
    );
}

#[test]
fn nuget_versions_compare_as_its_documents_say() {
    ordered(
        version::semantic::compare_nuget,
        &[
            "1.0.0-1",
            "1.0.0-2",
            "1.0.0-11",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-Beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.0.1",
            "1.0.1",
            "1.1",
            "1.10",
            "2.0",
        ],
        &[
            ("1.0", "1.0.0"),
            ("1.0.0.0", "1.0.0"),
            ("1.00.0.1", "1.0.0.1"),
            ("1.0.0-RC", "1.0.0-rc"),
            ("1.0.7+r3456", "1.0.7"),
            ("1.01.1", "1.1.1"),
        ],
    );
}
