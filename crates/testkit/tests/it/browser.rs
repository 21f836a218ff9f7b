//! A page is read at rest, on a fast machine and on a slow one.

use anyhow::Result;
use muster_testkit::browser::Browser;
use serde_json::json;

/// The colour fades for ten minutes; the animation of the second element never ends.
const PAGE: &str = "data:text/html,<style>\
    p { background: white; transition: background-color 600s }\
    @media (prefers-color-scheme: dark) { p { background: black } }\
    @keyframes turn { to { rotate: 360deg } }\
    i { animation: turn 1s infinite }\
    </style><p>text</p><i>busy</i>";

#[tokio::test]
async fn a_page_that_fades_to_dark_is_read_when_it_is_dark() -> Result<()> {
    let browser = Browser::start().await?;
    browser.show(800, 600, false).await?;
    browser.open(PAGE).await?;
    let colour = "return getComputedStyle(document.querySelector('p')).backgroundColor";
    assert_eq!(browser.run(colour).await?, json!("rgb(255, 255, 255)"));
    browser.show(800, 600, true).await?;
    assert_eq!(browser.run(colour).await?, json!("rgb(0, 0, 0)"));
    browser.end().await
}
