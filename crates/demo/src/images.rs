//! The images that there are, each for one thing to see. Debian's and Alpine's lowest layers are shared, so
//! that each is read once; versions are those that a distribution really had.

use crate::archive::File;
use crate::error::Error;
use crate::image::{Build, Image, Layer};
use crate::packages::{Alpine, Debian, Npm, alpine_release, apk, debian_release, dpkg, npm};
use crate::program::{self, Module};

const AMD64: &str = "amd64";
const ARM64: &str = "arm64";

/// Debian 12.1, as it was in the summer of 2023.
const DEBIAN: [Debian; 11] = [
    ("base-files", "base-files", "12.4+deb12u1"),
    ("bash", "bash", "5.2.15-2"),
    ("curl", "curl", "7.88.1-10+deb12u1"),
    ("libc6", "glibc", "2.36-9+deb12u1"),
    ("libcurl4", "curl", "7.88.1-10+deb12u1"),
    ("libgnutls30", "gnutls28", "3.7.9-2"),
    ("libkrb5-3", "krb5", "1.20.1-2"),
    ("liblzma5", "xz-utils", "5.4.1-0.2"),
    ("libssl3", "openssl", "3.0.9-1"),
    ("openssl", "openssl", "3.0.9-1"),
    ("zlib1g", "zlib", "1:1.2.13.dfsg-1"),
];
/// The same after `apt-get install nginx`, an upgrade of OpenSSL and the removal of curl.
const STOREFRONT: [Debian; 14] = [
    ("base-files", "base-files", "12.4+deb12u1"),
    ("bash", "bash", "5.2.15-2"),
    ("libc6", "glibc", "2.36-9+deb12u1"),
    ("libexpat1", "expat", "2.5.0-1"),
    ("libgnutls30", "gnutls28", "3.7.9-2"),
    ("libkrb5-3", "krb5", "1.20.1-2"),
    ("liblzma5", "xz-utils", "5.4.1-0.2"),
    ("libnghttp2-14", "nghttp2", "1.52.0-1"),
    ("libssl3", "openssl", "3.0.14-1~deb12u2"),
    ("libwebp7", "libwebp", "1.2.4-0.2"),
    ("nginx", "nginx", "1.22.1-9"),
    ("nginx-common", "nginx", "1.22.1-9"),
    ("openssl", "openssl", "3.0.14-1~deb12u2"),
    ("zlib1g", "zlib", "1:1.2.13.dfsg-1"),
];
/// Alpine 3.20.0, as it was in the spring of 2024.
const ALPINE: [Alpine; 8] = [
    (
        "alpine-baselayout",
        "alpine-baselayout",
        "3.6.5-r0",
        "GPL-2.0-only",
    ),
    ("apk-tools", "apk-tools", "2.14.4-r0", "GPL-2.0-only"),
    ("busybox", "busybox", "1.36.1-r28", "GPL-2.0-only"),
    ("libcrypto3", "openssl", "3.3.0-r2", "Apache-2.0"),
    ("libssl3", "openssl", "3.3.0-r2", "Apache-2.0"),
    ("musl", "musl", "1.2.5-r0", "MIT"),
    ("ssl_client", "busybox", "1.36.1-r28", "GPL-2.0-only"),
    ("zlib", "zlib", "1.3.1-r1", "Zlib"),
];
const NODE: [Alpine; 2] = [
    ("nodejs", "nodejs", "20.13.1-r0", "MIT"),
    ("xz-libs", "xz", "5.6.1-r3", "GPL-2.0-or-later"),
];
const REDIS: [Alpine; 1] = [("redis", "redis", "7.2.5-r0", "BSD-3-Clause")];
/// Alpine after `apk upgrade`: nothing is wrong with it, as far as the advisories here go.
const UPGRADED: [Alpine; 8] = [
    (
        "alpine-baselayout",
        "alpine-baselayout",
        "3.6.5-r0",
        "GPL-2.0-only",
    ),
    ("apk-tools", "apk-tools", "2.14.4-r1", "GPL-2.0-only"),
    ("busybox", "busybox", "1.36.1-r31", "GPL-2.0-only"),
    ("libcrypto3", "openssl", "3.3.5-r0", "Apache-2.0"),
    ("libssl3", "openssl", "3.3.5-r0", "Apache-2.0"),
    ("musl", "musl", "1.2.5-r1", "MIT"),
    ("ssl_client", "busybox", "1.36.1-r31", "GPL-2.0-only"),
    ("zlib", "zlib", "1.3.1-r1", "Zlib"),
];

const CART: [Npm; 10] = [
    ("body-parser", "1.19.0", "MIT"),
    ("cookie", "0.4.0", "MIT"),
    ("express", "4.17.1", "MIT"),
    ("json5", "2.2.0", "MIT"),
    ("lodash", "4.17.15", "MIT"),
    ("minimist", "1.2.5", "MIT"),
    ("node-fetch", "2.6.1", "MIT"),
    ("path-to-regexp", "0.1.7", "MIT"),
    ("qs", "6.7.0", "BSD-3-Clause"),
    ("semver", "7.3.5", "ISC"),
];
const CART_UPGRADED: [Npm; 10] = [
    ("body-parser", "1.20.3", "MIT"),
    ("cookie", "0.7.1", "MIT"),
    ("express", "4.21.2", "MIT"),
    ("json5", "2.2.3", "MIT"),
    ("lodash", "4.17.21", "MIT"),
    ("minimist", "1.2.8", "MIT"),
    ("node-fetch", "2.7.0", "MIT"),
    ("path-to-regexp", "0.1.12", "MIT"),
    ("qs", "6.13.0", "BSD-3-Clause"),
    ("semver", "7.6.3", "ISC"),
];

const PAYMENTS: [Module; 5] = [
    ("github.com/dgrijalva/jwt-go", "v3.2.0+incompatible"),
    ("golang.org/x/crypto", "v0.13.0"),
    ("golang.org/x/net", "v0.15.0"),
    ("golang.org/x/text", "v0.13.0"),
    ("google.golang.org/protobuf", "v1.31.0"),
];
const METRICS: [Module; 2] = [
    ("golang.org/x/net", "v0.16.0"),
    ("google.golang.org/protobuf", "v1.34.2"),
];

/// All images. The same call makes the same bytes.
pub fn all() -> Result<Vec<Image>, Error> {
    let alpine = alpine()?;
    let certificates = certificates()?;
    let cart = |packages: &[Npm]| -> Result<Vec<Build>, Error> {
        Ok(amd64(vec![alpine.clone(), node()?, cart(packages)?]))
    };
    let storefront = [AMD64, ARM64].map(|architecture| {
        Ok(Build {
            architecture,
            layers: vec![debian(architecture)?, nginx(architecture)?, shop_pages()?],
        })
    });
    let storefront: Result<Vec<Build>, Error> = storefront.into_iter().collect();
    Ok(vec![
        Image::new(
            "platform/backup",
            "1.2.0",
            amd64(vec![debian(AMD64)?, backup()?]),
        ),
        Image::new(
            "platform/gateway",
            "3.1.0",
            amd64(vec![alpine.clone(), upgraded()?]),
        ),
        Image::new(
            "platform/metrics",
            "0.9.0",
            amd64(vec![certificates.clone(), metrics()?]),
        ),
        Image::new("shop/cache", "7.2.5", amd64(vec![alpine.clone(), redis()?])),
        Image::new("shop/cart", "1.8.0", cart(&CART)?),
        // Nobody runs it yet: its packages of npm are upgraded, and what is below them is not.
        Image::new("shop/cart", "1.9.0", cart(&CART_UPGRADED)?),
        Image::new(
            "shop/payments",
            "4.2.1",
            amd64(vec![certificates, payments()?]),
        ),
        Image::new("shop/storefront", "2.3.0", storefront?),
    ])
}

fn amd64(layers: Vec<Layer>) -> Vec<Build> {
    vec![Build {
        architecture: AMD64,
        layers,
    }]
}

fn debian(architecture: &str) -> Result<Layer, Error> {
    let mut files = debian_release("12.1").to_vec();
    files.push(dpkg(architecture, &DEBIAN));
    files.push(File::program("usr/bin/curl", "#!/bin/sh\n"));
    Layer::new("ADD debian-12.1.tar /", &files)
}

fn nginx(architecture: &str) -> Result<Layer, Error> {
    let files = [
        dpkg(architecture, &STOREFRONT),
        File::new("etc/nginx/nginx.conf", "events {}\n"),
        File::removed("usr/bin", "curl"),
    ];
    let command = "RUN apt-get install -y nginx openssl && apt-get purge -y curl";
    Layer::new(command, &files)
}

fn shop_pages() -> Result<Layer, Error> {
    let page = File::new(
        "srv/shop/index.html",
        "<!doctype html><title>Shop</title>\n",
    );
    Layer::new("COPY site /srv/shop", &[page])
}

fn backup() -> Result<Layer, Error> {
    let script = File::program("usr/local/bin/backup", "#!/bin/bash\nset -e\n");
    Layer::new("COPY backup /usr/local/bin/", &[script])
}

fn alpine() -> Result<Layer, Error> {
    let mut files = alpine_release("3.20.0").to_vec();
    files.push(apk(&ALPINE));
    Layer::new("ADD alpine-minirootfs-3.20.0.tar /", &files)
}

fn upgraded() -> Result<Layer, Error> {
    let mut files = alpine_release("3.20.8").to_vec();
    files.push(apk(&UPGRADED));
    Layer::new("RUN apk upgrade --no-cache", &files)
}

fn node() -> Result<Layer, Error> {
    let packages = [&ALPINE[..], &NODE].concat();
    Layer::new("RUN apk add --no-cache nodejs", &[apk(&packages)])
}

fn redis() -> Result<Layer, Error> {
    let packages = [&ALPINE[..], &REDIS].concat();
    Layer::new("RUN apk add --no-cache redis", &[apk(&packages)])
}

fn cart(packages: &[Npm]) -> Result<Layer, Error> {
    Layer::new("COPY node_modules /app/node_modules", &npm("app", packages))
}

fn certificates() -> Result<Layer, Error> {
    let file = File::new("etc/ssl/certs/ca-certificates.crt", "");
    Layer::new("COPY ca-certificates.crt /etc/ssl/certs/", &[file])
}

fn payments() -> Result<Layer, Error> {
    let program = program::go(
        "go1.21.2",
        ("example.com/shop/payments", "v4.2.1"),
        &PAYMENTS,
    );
    let program = File::program("usr/bin/payments", program);
    Layer::new("COPY payments /usr/bin/", &[program])
}

fn metrics() -> Result<Layer, Error> {
    let program = program::go(
        "go1.23.4",
        ("example.com/platform/metrics", "v0.9.0"),
        &METRICS,
    );
    let program = File::program("usr/bin/metrics", program);
    Layer::new("COPY metrics /usr/bin/", &[program])
}
