/* The page for partners: a key in this tab's memory, and Swagger UI over the document as that key
   sees it. Nothing is stored, and nothing but this gateway is asked. */
"use strict";

(() => {
  const KEY_SCHEME = "apiKey";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const byId = (id) => document.getElementById(id);
  // where the page's own gateway answers, whatever address the document gives to partners
  const here = new URL("./", window.location.href).href;

  // grows with each document that is asked for: an answer to an older question counts no more
  let asked = 0;
  // Swagger UI, the document that it shows, and where that says that calls go
  let ui;
  let shown;
  let bases = [];
  let authorised = false;

  const make = (tag, text, ...children) => {
    const element = document.createElement(tag);
    if (text) element.textContent = text;
    element.append(...children);
    return element;
  };

  const tell = (text, kind = "") => {
    const state = byId("key-state");
    state.textContent = text;
    state.className = kind;
  };

  /* The document as a key sees it, or whole without one; an Error with the gateway's own words. */
  const described = async (key) => {
    // what no header can hold
    if (/[^!-~]/.test(key)) throw new Error("a key has no spaces, accents or signs like these.");
    const headers = key ? { "X-API-Key": key } : {};
    let answer;
    try {
      answer = await fetch(`${here}openapi.json`, {
        headers,
        cache: "no-store",
        credentials: "omit",
      });
    } catch {
      throw new Error("the gateway could not be reached.");
    }
    const data = await answer.json();
    if (!answer.ok) throw new Error(`${answer.status} ${data.message}`);
    return data;
  };

  const operationsOf = (data) => Object.values(data.paths).flatMap((item) => Object.values(item));

  /* The operations and the schemas alone: what else Swagger UI has, this page tells by itself, and
     for the key it has one place. Links inside of buttons, which nobody could reach, are text. */
  const ownLayout = ({ React }) => {
    const element = React.createElement;
    const Layout = ({ getComponent }) =>
      element(
        "div",
        { className: "swagger-ui" },
        element(getComponent("errors", true)),
        element(getComponent("operations", true)),
        element(getComponent("Models", true)),
      );
    const nothing = () => () => null;
    // its own takes an underscore, which our ids have, for a space of old, and complains
    const parseDeepLinkHash = (original, { layoutActions, layoutSelectors }) => (hash) => {
      if (!hash.startsWith("#/")) return;
      const key = layoutSelectors.isShownKeyFromUrlHashArray(hash.slice(2).split("/"));
      layoutActions.show(key, true);
      layoutActions.scrollTo(key);
      layoutActions.scrollToVirtualizedOperation(key);
    };
    return {
      components: { Layout },
      wrapComponents: {
        DeepLink: () => (props) => element("span", null, props.text),
        authorizeBtn: nothing,
        authorizeOperationBtn: nothing,
      },
      statePlugins: { layout: { wrapActions: { parseDeepLinkHash } } },
    };
  };

  /* What Swagger UI leaves without a name or out of the keyboard's reach. */
  const mend = (root) => {
    const each = (selector, change) => root.querySelectorAll(selector).forEach(change);
    each("textarea:not([aria-label])", (area) => (area.ariaLabel = "Body of the request"));
    each("select.examples-select-element:not([aria-label])", (select) => (select.ariaLabel = "Example"));
    each("select:not([aria-label], [id])", (select) => (select.ariaLabel = "Value"));
    each("pre:not([tabindex])", (pre) => (pre.tabIndex = 0));
    // the role of a region would take the table's own away
    each("table[role=region]", (table) => table.removeAttribute("role"));
  };

  /* Calls go to where the page came from; what is shown of them keeps the public address. */
  const toHere = (request) => {
    for (const base of bases) {
      if (request.url.startsWith(base)) request.url = here + request.url.slice(base.length);
    }
    request.credentials = "omit";
    return request;
  };

  const start = (data) =>
    window.SwaggerUIBundle({
      domNode: byId("console"),
      spec: data,
      plugins: [ownLayout],
      layout: "Layout",
      deepLinking: true,
      validatorUrl: null,
      displayRequestDuration: true,
      tryItOutEnabled: true,
      showMutatedRequest: false,
      requestInterceptor: toHere,
    });

  /* Whatever was asked and answered with the key before goes with it. */
  const clear = () => {
    for (const [path, item] of Object.entries(shown.paths)) {
      for (const method of Object.keys(item)) {
        ui.specActions.clearResponse(path, method);
        ui.specActions.clearRequest(path, method);
      }
    }
    if (authorised) ui.authActions.logout([KEY_SCHEME]);
  };

  /* One Swagger UI for the page's whole life: a second one would mix its schemas with the first's. */
  const show = (data, key) => {
    bases = data.servers.map((server) => `${server.url}/`);
    if (ui) {
      clear();
      ui.specActions.updateSpec(JSON.stringify(data));
    } else {
      ui = start(data);
    }
    shown = data;
    authorised = key !== "";
    if (authorised) ui.preauthorizeApiKey(KEY_SCHEME, key);
  };

  /* Which operations are left, by the level at which they are seen. */
  const view = (data) => {
    const operations = operationsOf(data);
    const all = byId("operations-count").textContent;
    const byLevel = new Map();
    for (const each of operations) {
      const level = each["x-access-level"] ?? "whole at every level";
      byLevel.set(level, [...(byLevel.get(level) ?? []), each.summary]);
    }
    const told = [...byLevel].map(([level, summaries]) =>
      make("div", "", make("dt", level), make("dd", summaries.join(" \u00b7 "))),
    );
    tell(`The key is good: it reaches ${operations.length} of ${all} operations.`, "good");
    byId("key-view").replaceChildren(make("dl", "", ...told));
  };

  const use = async (key) => {
    const turn = ++asked;
    let data;
    try {
      data = await described(key);
    } catch (error) {
      if (turn === asked) tell(`The key was not taken: ${error.message}`, "bad");
      return;
    }
    if (turn !== asked) return;
    byId("key").value = "";
    byId("forget").hidden = false;
    view(data);
    show(data, key);
  };

  const forget = async () => {
    const turn = ++asked;
    byId("key").value = "";
    byId("forget").hidden = true;
    byId("key-view").replaceChildren();
    tell("The key is forgotten.");
    byId("key").focus();
    await begin(turn);
  };

  const begin = async (turn) => {
    try {
      const data = await described("");
      if (turn === asked) show(data, "");
    } catch (error) {
      if (turn === asked) byId("try-state").textContent = `Nothing to show: ${error.message}`;
    }
  };

  const paint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);

  new MutationObserver(() => mend(byId("console"))).observe(byId("console"), {
    childList: true,
    subtree: true,
  });
  paint();
  dark.addEventListener("change", paint);
  if (!window.SwaggerUIBundle) {
    byId("try-state").textContent =
      "What this part is made of could not be loaded: reload the page, or read the reference.";
    return;
  }
  byId("key-box").hidden = false;
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const key = byId("key").value.trim();
    if (key) use(key);
  });
  byId("forget").addEventListener("click", forget);
  begin(asked);
})();
