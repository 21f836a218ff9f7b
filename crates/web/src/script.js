// Keeps the page current: the same address is asked for again while somebody looks, and what is in <main>
// is replaced if it has changed. Whoever is typing or has a field open is not disturbed.
(() => {
  "use strict";
  const SHORTEST = 5000;
  const LONGEST = 60000;
  const live = document.getElementById("live");
  let tag = null;
  let timer = 0;
  let pause = SHORTEST;

  const say = (text) => {
    live.hidden = false;
    live.textContent = text;
  };
  const main = () => document.getElementById("main");
  const isBusy = () => {
    const active = document.activeElement;
    return active && main().contains(active) && /^(INPUT|SELECT|TEXTAREA)$/.test(active.tagName);
  };

  const swap = (text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const next = fresh.getElementById("main");
    const before = main();
    if (!next || next.innerHTML === before.innerHTML) return;
    const open = [...before.querySelectorAll("details[open]")].map((one) => one.id);
    open.forEach((id) => next.querySelector("#" + CSS.escape(id || "-"))?.setAttribute("open", ""));
    const active = document.activeElement;
    const link = before.contains(active) && active.getAttribute("href");
    const [x, y] = [window.scrollX, window.scrollY];
    const aside = [...before.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
    before.replaceWith(document.adoptNode(next));
    main().querySelectorAll(".scroll").forEach((one, at) => { one.scrollLeft = aside[at] || 0; });
    if (link) {
      const same = [...main().querySelectorAll("a[href]")].find((one) => one.getAttribute("href") === link);
      same?.focus({ preventScroll: true });
    }
    window.scrollTo(x, y);
    document.title = fresh.title;
  };

  const look = async () => {
    if (document.visibilityState !== "visible" || isBusy()) return plan();
    const begin = performance.now();
    try {
      const headers = tag ? { "If-None-Match": tag } : {};
      const answer = await fetch(location.href, { headers, redirect: "manual", cache: "no-store" });
      if (answer.type === "opaqueredirect") return say("Signed out: load the page again");
      if (answer.status === 200) {
        tag = answer.headers.get("ETag");
        const text = await answer.text();
        if (!isBusy()) swap(text); else tag = null;
      }
      const is_fine = answer.status === 200 || answer.status === 304;
      say(is_fine ? "Live" : "The server has trouble");
      pause = is_fine ? SHORTEST : Math.min(pause * 2, LONGEST);
    } catch {
      say("The server does not answer");
      pause = Math.min(pause * 2, LONGEST);
    }
    // A page that costs much is asked for less often.
    pause = Math.max(pause, Math.min(20 * (performance.now() - begin), LONGEST));
    plan();
  };

  const plan = () => {
    clearTimeout(timer);
    timer = setTimeout(look, pause);
  };

  // A choice is made by choosing.
  document.addEventListener("change", (event) => {
    if (event.target.matches(".filters select, .filters input[type=checkbox]")) event.target.form.requestSubmit();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") look();
  });
  say("Live");
  plan();
})();
