//! The frame of every page: where one is, where one can go, and the page itself.

use crate::address::{Filter, ROOT, Route};
use crate::door::Way;
use maud::{DOCTYPE, Markup, html};

/// A page that is ready to be framed.
pub(crate) struct Framed {
    pub(crate) title: String,
    pub(crate) main: Markup,
}

/// The parts of the site.
const PARTS: [(&str, Route); 6] = [
    ("Overview", Route::Overview),
    ("Workloads", Route::Workloads),
    ("Images", Route::Images),
    ("Vulnerabilities", Route::Vulnerabilities),
    ("Policies", Route::Policies),
    ("Registries", Route::Registries),
];

/// The part that a page is in.
fn part(route: &Route) -> Option<Route> {
    Some(match route {
        Route::Overview => Route::Overview,
        Route::Workloads | Route::Workload { .. } => Route::Workloads,
        Route::Images | Route::Image { .. } => Route::Images,
        Route::Vulnerabilities | Route::Vulnerability(_) => Route::Vulnerabilities,
        Route::Policies | Route::Policy { .. } => Route::Policies,
        Route::Registries => Route::Registries,
        _ => return None,
    })
}

fn head(title: &str, live: bool) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · Muster" }
            link rel="stylesheet" href={ (ROOT) "/style.css" };
            link rel="icon" type="image/svg+xml" href={ (ROOT) "/icon.svg" };
            @if live { script src={ (ROOT) "/script.js" } defer {} }
        }
    }
}

fn brand() -> Markup {
    html! {
        a class="brand" href=(ROOT) {
            svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true" {
                path d="M12 2 3 6v6c0 5 4 8.5 9 10 5-1.5 9-5 9-10V6z" {}
                path class="tick" d="m8 12 3 3 5-6" {}
            }
            "Muster"
        }
    }
}

/// A page of somebody who is signed in.
pub(crate) fn page(
    route: Option<&Route>,
    visitor: &str,
    filter: &Filter,
    framed: Framed,
) -> Markup {
    let current = route.and_then(part);
    let searched = match route {
        Some(Route::Search) => filter.text.as_str(),
        _ => "",
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(&framed.title, true))
            body {
                a class="skip" href="#main" { "Skip to the page" }
                header class="top" {
                    (brand())
                    nav aria-label="Parts" {
                        ul {
                            @for (name, to) in PARTS {
                                li {
                                    a href=(to.path()) aria-current=[(current.as_ref() == Some(&to)).then_some("page")] { (name) }
                                }
                            }
                        }
                    }
                    form class="search" action=(Route::Search.path()) method="get" role="search" aria-label="Site" {
                        input type="search" name="q" value=(searched) placeholder="Search" aria-label="Search workloads, images, vulnerabilities and policies" autocomplete="off";
                    }
                }
                main id="main" tabindex="-1" { (framed.main) }
                footer {
                    span { "Muster " (env!("CARGO_PKG_VERSION")) }
                    span id="live" role="status" hidden {}
                    form method="post" action=(Route::SignOut.path()) {
                        "Signed in as " b { (visitor) } " "
                        button class="plain" type="submit" { "Sign out" }
                    }
                }
            }
        }
    }
}

/// The page of somebody who is not.
pub(crate) fn sign_in(way: Way, told: &str, wanted: Option<&str>) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head("Sign in", false))
            body class="outside" {
                main id="main" {
                    (brand())
                    h1 { "Sign in" }
                    @if !told.is_empty() { p class="notice" role="alert" { (told) } }
                    @match way {
                        Way::Link => {
                            p { "The server prints a link when it starts, and a new one whenever one was used. Open the last one:" }
                            pre { "http://127.0.0.1:…/ui/sign-in?token=…" }
                        }
                        Way::Token => {
                            p { "Show a token that the cluster knows. You see what its owner may read, and nothing else." }
                            form method="post" action=(Route::SignIn.path()) {
                                label { "Token"
                                    input type="password" name="token" required autocomplete="off" spellcheck="false" autofocus;
                                }
                                @if let Some(wanted) = wanted { input type="hidden" name="to" value=(wanted); }
                                button type="submit" { "Sign in" }
                            }
                            p class="quiet" { "Make one with " code { "kubectl create token NAME -n NAMESPACE" } "." }
                        }
                    }
                }
            }
        }
    }
}

/// A page that is not there, or cannot be shown.
pub(crate) fn trouble(title: &str, told: &str) -> Framed {
    Framed {
        title: title.into(),
        main: html! {
            h1 { (title) }
            p { (told) }
            p { a href=(ROOT) { "Back to the overview" } }
        },
    }
}
