//! What the files of each distribution say.

use super::*;

fn decided(files: &[(&str, &str)]) -> Option<String> {
    let facts = files.iter().filter_map(|(path, contents)| {
        let fact = read(file(path).expect(path), path, contents.as_bytes())?;
        Some(((*path).to_owned(), fact))
    });
    decide(&facts.collect()).map(|os| os.to_string())
}

#[test]
fn every_distribution_is_known_by_its_files() {
    let release = |id: &str, version: &str, name: &str| {
        format!("NAME=\"{name}\"\nID={id}\nVERSION_ID=\"{version}\"\n")
    };
    for (id, version, name, expected) in [
        ("alpine", "3.20.3", "Alpine Linux", "alpine 3.20.3"),
        ("debian", "12", "Debian GNU/Linux", "debian 12"),
        ("ubuntu", "24.04", "Ubuntu", "ubuntu 24.04"),
        ("rhel", "9.4", "Red Hat Enterprise Linux", "redhat 9.4"),
        ("centos", "7", "CentOS Linux", "centos 7"),
        ("centos", "9", "CentOS Stream", "centos stream 9"),
        ("rocky", "9.4", "Rocky Linux", "rocky 9.4"),
        ("almalinux", "9.4", "AlmaLinux", "alma 9.4"),
        ("ol", "9.4", "Oracle Linux Server", "oracle 9.4"),
        ("fedora", "40", "Fedora Linux", "fedora 40"),
        ("amzn", "2023", "Amazon Linux", "amazon 2023"),
        (
            "opensuse-leap",
            "15.6",
            "openSUSE Leap",
            "opensuse-leap 15.6",
        ),
        (
            "opensuse-tumbleweed",
            "20240801",
            "openSUSE Tumbleweed",
            "opensuse-tumbleweed",
        ),
        ("sles", "15.5", "SLES", "suse linux enterprise server 15.5"),
        ("sle-micro", "5.4", "SLE Micro", "slem 5.4"),
        ("photon", "5.0", "VMware Photon OS", "photon 5.0"),
        (
            "mariner",
            "2.0.20240101",
            "Common Base Linux Mariner",
            "cbl-mariner 2.0.20240101",
        ),
        (
            "azurelinux",
            "3.0",
            "Microsoft Azure Linux",
            "azurelinux 3.0",
        ),
        ("wolfi", "20230201", "Wolfi", "wolfi 20230201"),
        (
            "chainguard",
            "20230214",
            "Chainguard",
            "chainguard 20230214",
        ),
        (
            "bottlerocket",
            "1.20.0",
            "Bottlerocket",
            "bottlerocket 1.20.0",
        ),
        ("echo", "1", "Echo", "echo 1"),
        ("minimos", "20241031", "MinimOS", "minimos 20241031"),
        ("arch", "", "Arch Linux", "arch"),
    ] {
        let text = release(id, version, name);
        assert_eq!(
            decided(&[("etc/os-release", &text)]).as_deref(),
            Some(expected)
        );
        assert_eq!(
            decided(&[("usr/lib/os-release", &text)]).as_deref(),
            Some(expected)
        );
    }
}

#[test]
fn files_of_their_own_stand_where_there_is_no_release_file() {
    for (path, line, expected) in [
        ("etc/debian_version", "11.9\n", "debian 11.9"),
        ("etc/alpine-release", "3.19.1\n", "alpine 3.19.1"),
        (
            "etc/lsb-release",
            "DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE=20.04\n",
            "ubuntu 20.04",
        ),
        (
            "etc/redhat-release",
            "Red Hat Enterprise Linux Server release 7.9 (Maipo)",
            "redhat 7.9",
        ),
        (
            "etc/centos-release",
            "CentOS release 6.10 (Final)",
            "centos 6.10",
        ),
        (
            "etc/centos-release",
            "CentOS Stream release 8",
            "centos stream 8",
        ),
        (
            "etc/oracle-release",
            "Oracle Linux Server release 8.9",
            "oracle 8.9",
        ),
        (
            "etc/rocky-release",
            "Rocky Linux release 8.5 (Green Obsidian)",
            "rocky 8.5",
        ),
        (
            "etc/almalinux-release",
            "AlmaLinux release 8.5 (Arctic Sphynx)",
            "alma 8.5",
        ),
        (
            "etc/fedora-release",
            "Fedora release 35 (Thirty Five)",
            "fedora 35",
        ),
        (
            "etc/system-release",
            "Amazon Linux AMI release 2018.03",
            "amazon 2018.03",
        ),
        (
            "usr/lib/system-release",
            "Amazon Linux release 2 (Karoo)",
            "amazon 2",
        ),
    ] {
        assert_eq!(
            decided(&[(path, line)]).as_deref(),
            Some(expected),
            "{line}"
        );
    }
    assert_eq!(decided(&[("etc/redhat-release", "Something 1")]), None);
    assert_eq!(decided(&[("etc/os-release", "no assignment")]), None);
    assert_eq!(decided(&[]), None);
}

#[test]
fn the_more_exact_file_gives_the_version() {
    let debian = ("etc/os-release", "ID=debian\nVERSION_ID=\"12\"\n");
    let rolling = ("etc/os-release", "ID=debian\n");
    for (files, expected) in [
        (vec![debian, ("etc/debian_version", "12.7")], "debian 12.7"),
        (
            vec![debian, ("etc/debian_version", "trixie/sid")],
            "debian 12",
        ),
        (
            vec![rolling, ("etc/debian_version", "trixie/sid")],
            "debian trixie/sid",
        ),
        (
            vec![
                ("etc/os-release", "ID=ubuntu\nVERSION_ID=24.04\n"),
                ("etc/debian_version", "trixie/sid"),
            ],
            "ubuntu 24.04",
        ),
        (
            vec![
                ("etc/os-release", "ID=somebian\nVERSION_ID=1\n"),
                ("etc/debian_version", "12.1"),
            ],
            "debian 12.1",
        ),
        (
            vec![
                ("etc/os-release", "ID=ol\nVERSION_ID=8.9\n"),
                (
                    "etc/redhat-release",
                    "Red Hat Enterprise Linux release 8.9 (Ootpa)",
                ),
            ],
            "oracle 8.9",
        ),
    ] {
        assert_eq!(decided(&files).as_deref(), Some(expected));
    }
}

#[test]
fn extended_support_is_noticed() {
    let status = r#"{"services": [{"name": "esm-infra", "status": "enabled"}]}"#;
    let facts = [
        ("etc/os-release", "ID=ubuntu\nVERSION_ID=18.04\n"),
        ("var/lib/ubuntu-advantage/status.json", status),
    ];
    let facts = facts.map(|(path, text)| {
        (
            path.to_owned(),
            read(file(path).unwrap(), path, text.as_bytes()).unwrap(),
        )
    });
    assert!(decide(&facts.into()).unwrap().extended);
}

#[test]
fn the_newest_repository_of_alpine_counts() {
    for (text, expected) in [
        (
            "https://dl-cdn.alpinelinux.org/alpine/v3.19/main\nhttps://x/alpine/v3.20/community",
            Some("3.20"),
        ),
        (
            "https://x/alpine/v3.19/main\n@edge https://x/alpine/edge/testing",
            Some("edge"),
        ),
        ("#https://x/alpine/v3.19/main", None),
    ] {
        assert_eq!(repositories(text).as_deref(), expected);
    }
}
