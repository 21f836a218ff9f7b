// Keeps the page current: the same address is asked for again while somebody looks, and what is in <main>
// is replaced if it has changed. Whoever is typing, or has typed and not sent it, is not disturbed.
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
    if (live.textContent !== text) live.textContent = text;
  };
  const main = () => document.getElementById("main");
  const isBusy = () => {
    const active = document.activeElement;
    if (active && main().contains(active) && /^(INPUT|SELECT|TEXTAREA)$/.test(active.tagName)) return true;
    return [...main().querySelectorAll("input[type=search], input[type=text]")]
      .some((field) => field.value !== field.defaultValue);
  };

  // What can have the focus, so that it can be found again where the page is otherwise the same.
  const FOCUSABLE = "a[href], button, summary, input, select";
  const focused = (before) => {
    const active = document.activeElement;
    if (active === before) return () => main();
    if (!before.contains(active)) return () => null;
    const of = (root) => [...root.querySelectorAll(FOCUSABLE)];
    const at = of(before).indexOf(active);
    const like = (one) => one && one.tagName === active.tagName && one.textContent === active.textContent
      && one.getAttribute("href") === active.getAttribute("href");
    return () => (like(of(main())[at]) ? of(main())[at] : of(main()).find(like));
  };

  // Times go on by themselves; that is no change that somebody should notice.
  const timeless = (root) => {
    const copy = root.cloneNode(true);
    copy.querySelectorAll("time").forEach((one) => { one.textContent = ""; });
    return copy.innerHTML;
  };

  const swap = (text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const next = fresh.getElementById("main");
    const before = main();
    if (!next || next.innerHTML === before.innerHTML) return;
    const open = [...before.querySelectorAll("details")].filter((one) => one.open).map((one) => one.id);
    before.querySelectorAll("details").forEach((one) => { one.open = false; });
    const isSame = timeless(next) === timeless(before);
    before.querySelectorAll("details").forEach((one) => { one.open = open.includes(one.id); });
    if (isSame) {
      const times = next.querySelectorAll("time");
      before.querySelectorAll("time").forEach((one, at) => { one.textContent = times[at].textContent; });
      return;
    }
    open.forEach((id) => next.querySelector("#" + CSS.escape(id || "-"))?.setAttribute("open", ""));
    const again = focused(before);
    const [x, y] = [window.scrollX, window.scrollY];
    const aside = [...before.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
    before.replaceWith(document.adoptNode(next));
    main().querySelectorAll(".scroll").forEach((one, at) => { one.scrollLeft = aside[at] || 0; });
    again()?.focus({ preventScroll: true });
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
    // A page that costs much is asked for less often, unless the rest of it is being read.
    const cost = main().querySelector("[data-more]") ? 0 : 20 * (performance.now() - begin);
    pause = Math.max(pause, Math.min(cost, LONGEST));
    plan();
  };

  const plan = () => {
    clearTimeout(timer);
    timer = setTimeout(look, pause);
  };

  // A choice is made by choosing. Some browsers take every key in a list for a choice: who uses keys
  // chooses by Enter, or by the button.
  let byKey = false;
  const isList = (target) => target.matches?.(".filters select");
  document.addEventListener("keydown", (event) => {
    byKey = isList(event.target);
    if (byKey && event.key === "Enter") event.target.form.requestSubmit();
  });
  document.addEventListener("pointerdown", () => { byKey = false; });
  document.addEventListener("change", (event) => {
    const isCheck = event.target.matches(".filters input[type=checkbox]");
    if (isCheck || (isList(event.target) && !byKey)) event.target.form.requestSubmit();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") look();
  });
  say("Live");
  plan();
})();
