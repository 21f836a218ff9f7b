//! Artifacts that are not what they say: each is refused with a reason, and what was there stays.

use crate::support::*;
use anyhow::Result;
use muster_advisories::Error;
use muster_testkit::push::LAYER as IMAGE_LAYER;
use muster_testkit::registry::Registry;

/// Layers, each with its media type.
type Layers = Vec<(&'static str, Vec<u8>)>;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_wrong_goes_live() -> Result<()> {
    let registry = Registry::start()?;
    push(&registry, "2", &[(LAYER, &archive("1.0"))]).await?;
    let (_place, directory) = directory();
    let update = from(&[&registry.host()]);
    directory.update(&update, &Deaf).await?;
    let good = database("2.0");
    let about = metadata("2026-01-02T03:04:05Z");
    let of = |files: &[(&str, &[u8])]| gzip(&tar(files));
    let whole = archive("2.0");
    let other = metadata("2026-01-02T03:04:05Z").replace("\"Version\":2", "\"Version\":3");
    // Hundreds of megabytes of nothing in a few hundred kilobytes.
    let bomb = of(&[
        ("junk", &vec![0; 64 << 20]),
        ("metadata.json", about.as_bytes()),
    ]);
    let cases: Vec<(&str, Layers)> = vec![
        ("no archive", vec![(LAYER, b"hello".to_vec())]),
        ("nothing in it", vec![(LAYER, of(&[]))]),
        ("no metadata", vec![(LAYER, of(&[("trivy.db", &good)]))]),
        (
            "no database",
            vec![(LAYER, of(&[("metadata.json", about.as_bytes())]))],
        ),
        ("a bomb", vec![(LAYER, bomb)]),
        (
            "no bbolt file",
            vec![(
                LAYER,
                of(&[
                    ("trivy.db", &[7; 9000]),
                    ("metadata.json", about.as_bytes()),
                ]),
            )],
        ),
        (
            "an empty database",
            vec![(
                LAYER,
                of(&[("trivy.db", &[]), ("metadata.json", about.as_bytes())]),
            )],
        ),
        (
            "metadata that is none",
            vec![(LAYER, of(&[("trivy.db", &good), ("metadata.json", b"[]")]))],
        ),
        (
            "another schema",
            vec![(
                LAYER,
                of(&[("trivy.db", &good), ("metadata.json", other.as_bytes())]),
            )],
        ),
        (
            "cut off",
            vec![(LAYER, whole[..whole.len() - 1000].to_vec())],
        ),
        (
            "outside",
            vec![(
                LAYER,
                of(&[
                    ("../trivy.db", &good),
                    ("/../metadata.json", about.as_bytes()),
                ]),
            )],
        ),
        ("two layers", vec![(LAYER, whole.clone()), (LAYER, of(&[]))]),
        ("an image", vec![(IMAGE_LAYER, whole.clone())]),
    ];
    for (what, layers) in cases {
        let layers: Vec<(&str, &[u8])> =
            layers.iter().map(|one| (one.0, one.1.as_slice())).collect();
        push(&registry, "2", &layers).await?;
        let error = directory.update(&update, &Deaf).await.expect_err(what);
        assert!(matches!(error, Error::Repositories(_)), "{what}: {error}");
        assert_eq!(fixed_in(&directory), "1.0", "{what}");
        let left: Vec<_> = files(directory.path())
            .into_iter()
            .filter(|name| name.ends_with(".unfinished"))
            .collect();
        assert!(left.is_empty(), "{what}: {left:?}");
    }
    push(&registry, "2", &[(LAYER, &whole)]).await?;
    directory.update(&update, &Deaf).await?;
    assert_eq!(fixed_in(&directory), "2.0");
    Ok(())
}

#[test]
fn parts_that_are_damaged_on_disk_are_errors() {
    let (_place, directory) = directory();
    std::fs::create_dir_all(directory.path()).unwrap();
    for name in ["trivy.db", "osv.index", "epss.table", "kev.table"] {
        let path = directory.path().join(name);
        for bytes in [
            &b""[..],
            b"x",
            &[0; 5000],
            b"MSTRNOTE",
            b"\xff\xff\xff\xff\xff\xff\xff\xffMSTRNOTE",
            b"MSTROSV1",
            b"MSTRSET1",
            b"MSTREXP1",
        ] {
            std::fs::write(&path, bytes).unwrap();
            assert!(directory.open().is_err(), "{name} {bytes:?}");
            assert!(directory.info().is_err(), "{name} {bytes:?}");
        }
        std::fs::remove_file(path).unwrap();
    }
}
