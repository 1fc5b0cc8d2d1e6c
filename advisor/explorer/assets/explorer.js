"use strict";

// What the pages do by themselves: keep their state in the address, send the API key along, say what
// went wrong, draw pictures and save them, copy texts, and keep a plan.
(() => {
  const LONGEST_QUERY = 3900; // The service refuses addresses past 4096 characters.
  const COPIED_MS = 2000;
  const TYPED_MS = 200; // without a key pressed, after which a text is taken
  const PICTURE = { width: 960, height: 540 };
  const byId = (id) => document.getElementById(id);

  const plainFetch = window.fetch.bind(window);
  const tell = (sentence) => window.dash_clientside.set_props("failure", { children: sentence });

  const withKey = (options) => {
    const key = byId("key")?.value;
    if (!key) return options;
    return { ...options, headers: { ...options?.headers, Authorization: `Bearer ${key}` } };
  };

  const problemOf = async (response) => {
    try {
      return (await response.json()).detail;
    } catch {
      return `The service answered ${response.status}.`;
    }
  };

  // What draws the pictures is large. It is fetched while the first words are computed, and run while
  // the first pictures are.
  const DRAWN = "pictures.children";
  const PICTURELESS = /\/terminology\/*$/;
  const PRELOADED_MS = 2000;
  const added = (tag, attributes) => {
    const made = Object.assign(document.createElement(tag), attributes);
    document.head.append(made);
    return made;
  };
  let plotly;
  const fetchPlotly = () => {
    if (plotly || PICTURELESS.test(window.location.pathname)) return;
    if (document.querySelector("link[rel=preload]")) return;
    added("link", { rel: "preload", as: "script", href: window._dashPlotlyJSURL });
    // Browsers complain of what was fetched ahead and is not run soon.
    setTimeout(() => runPlotly().catch(() => {}), PRELOADED_MS);
  };
  const runPlotly = () => {
    plotly ??= new Promise((done, failed) => {
      const script = added("script", { src: window._dashPlotlyJSURL });
      script.addEventListener("load", () => done(window.Plotly));
      script.addEventListener("error", (event) => {
        plotly = undefined; // to be tried again
        script.remove();
        failed(event);
      });
    });
    return plotly;
  };
  const drawn = new WeakMap(); // what each place shows
  const UNDRAWN = "The pictures cannot be drawn. Their figures are in the tables below them.";
  const draw = async (place) => {
    const { figure } = place.dataset;
    if (!place.isConnected || drawn.get(place) === figure) return;
    drawn.set(place, figure);
    try {
      const { data, layout, config } = JSON.parse(figure);
      const { react } = await runPlotly();
      if (place.isConnected) await react(place, data, layout, config);
    } catch {
      drawn.delete(place);
      tell(UNDRAWN);
    }
  };
  // One after the other, so that each is seen before the next is begun.
  let turn = Promise.resolve();
  const drawInTurn = (place) => {
    turn = turn.then(() => draw(place)).then(() => new Promise((next) => { setTimeout(next); }));
  };
  // Pictures are drawn as they come within half a window's height of what is seen, the nearest first.
  // Tables that are folded away are made as they are unfolded, others at once.
  const make = (place) => (place.dataset.figure ? drawInTurn(place) : fill(place));
  const away = ({ boundingClientRect: { top, bottom } }) => (
    Math.max(top - window.innerHeight, -bottom, 0)
  );
  const nearby = new IntersectionObserver((entries) => {
    const near = entries.filter(({ isIntersecting }) => isIntersecting);
    near.sort((one, other) => away(one) - away(other)).forEach(({ target }) => {
      nearby.unobserve(target);
      make(target);
    });
  }, { rootMargin: "50% 0px" });
  const soon = (place) => {
    nearby.unobserve(place);
    if (place.matches("[data-figure], details:not([open]) *")) nearby.observe(place);
    else fill(place);
  };
  const MADE = "[data-figure], [data-table]";
  const forget = (node) => {
    node.querySelectorAll?.(MADE).forEach((place) => {
      nearby.unobserve(place);
      if (drawn.delete(place)) window.Plotly?.purge(place);
    });
  };
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("[data-table]").forEach(fill);
    document.querySelectorAll("[data-figure]").forEach(draw);
  });

  // Dash asks through this for every change of a page. What it makes of an error it would only
  // write on the console: it is told here, and to Dash that nothing changes.
  const nothingNew = () => new Response(null, { status: 204 });
  // An answer that a later question has overtaken would show what was asked before.
  const latest = new Map(); // the last question for each place
  window.fetch = async (resource, options) => {
    const asks = String(resource?.url ?? resource).includes("_dash-update-component");
    if (!asks) return plainFetch(resource, options);
    try {
      const { output } = JSON.parse(options.body);
      const asked = plainFetch(resource, withKey(options));
      latest.set(output, asked);
      if (output === DRAWN) runPlotly().catch(() => {});
      else fetchPlotly();
      const response = await asked;
      if (latest.get(output) !== asked) return nothingNew();
      tell(response.ok ? "" : await problemOf(response));
      return response.ok ? response : nothingNew();
    } catch {
      tell("The service does not answer. What is shown may be old.");
      return nothingNew();
    }
  };

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.explorer = {
    remember: (query) => {
      const long = (query ?? "").length > LONGEST_QUERY;
      byId("too-long").hidden = !long;
      const place = query && !long ? `?${query}` : "";
      window.history.replaceState(window.history.state, "", window.location.pathname + place);
      return query;
    },
  };

  const save = (name, type, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  };

  // Tables are made of their data here: as parts of the page that Dash watches they took seconds.
  const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
  const shown = (value) => {
    if (value === null) return "–";
    return typeof value === "number" ? digits.format(value) : value;
  };
  const element = (tag, textContent, attributes = {}) => {
    const made = Object.assign(document.createElement(tag), { textContent });
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    return made;
  };
  const fill = (place) => {
    const { caption, columns, rows, emphasis } = JSON.parse(place.dataset.table);
    const table = element("table", "");
    table.append(element("caption", caption));
    const head = table.createTHead().insertRow();
    columns.forEach(([, title]) => head.append(element("th", title, { scope: "col" })));
    const body = table.createTBody();
    rows.forEach(([first, ...others], number) => {
      const row = body.insertRow();
      if (number === emphasis) row.className = "emphasis";
      row.append(element("th", shown(first), { scope: "row" }));
      row.append(...others.map((value) => element("td", shown(value))));
    });
    place.replaceChildren(table);
  };
  // A field for text, which nobody writes to but who types.
  const offer = (place) => {
    const { rows, inputMode, known } = JSON.parse(place.dataset.text);
    const field = element(rows ? "textarea" : "input", "", { autocomplete: "off" });
    let taken = place.value;
    Object.assign(field, { value: taken, inputMode, className: "text", spellcheck: false });
    if (rows) field.rows = rows;
    let timer;
    const take = () => {
      clearTimeout(timer);
      if (field.value === taken) return;
      taken = field.value;
      window.dash_clientside.set_props(JSON.parse(place.id), { value: taken });
    };
    field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(take, TYPED_MS);
    });
    field.addEventListener("change", take);
    place.replaceChildren(field);
    if (!known.length) return;
    const list = element("datalist", "", { id: `known-${place.id}` });
    list.append(...known.map((name) => element("option", "", { value: name })));
    field.setAttribute("list", list.id);
    place.append(list);
  };
  // Dash says that its radio buttons and checkboxes are options of a list box, and they are not.
  const mend = (label) => {
    label.closest("[role=listbox]")?.setAttribute("role", "group");
    label.removeAttribute("role");
    label.removeAttribute("aria-selected");
  };
  const repairs = [
    [MADE, soon], ["[data-text]", offer], ["label[role=option]:has(input)", mend],
  ];
  new MutationObserver((changes) => {
    changes.forEach(({ type, target, addedNodes, removedNodes }) => {
      removedNodes.forEach(forget);
      const nodes = type === "attributes" ? [target] : addedNodes;
      nodes.forEach((node) => repairs.forEach(([selector, repair]) => {
        if (node.matches?.(selector)) repair(node);
        if (type !== "attributes") node.querySelectorAll?.(selector).forEach(repair);
      }));
    });
  }).observe(document, {
    subtree: true, childList: true, attributeFilter: ["data-table", "data-figure", "role", "aria-selected"],
  });

  const tableOf = (figure) => {
    const { columns, rows } = JSON.parse(figure.querySelector("[data-table]").dataset.table);
    return { heads: columns.map(([name]) => name), lines: rows };
  };

  const csvCell = (value) => {
    const text = value === null ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };

  const image = async (button, filename, format) => {
    const place = button.closest("figure").querySelector("[data-figure]");
    const figure = JSON.parse(place.dataset.figure);
    const layout = { ...figure.layout, paper_bgcolor: "#ffffff", autosize: false, ...PICTURE };
    const scale = format === "png" ? 2 : 1;
    return (await runPlotly()).downloadImage(
      { data: figure.data, layout }, { filename, format, scale, ...PICTURE },
    );
  };

  const exporters = {
    csv: (button, name) => {
      const { heads, lines } = tableOf(button.closest("figure"));
      const text = [heads, ...lines].map((line) => line.map(csvCell).join(",")).join("\r\n");
      save(`${name}.csv`, "text/csv", `${text}\r\n`);
    },
    json: (button, name) => {
      const { heads, lines } = tableOf(button.closest("figure"));
      const items = lines.map((line) => Object.fromEntries(line.map((v, i) => [heads[i], v])));
      save(`${name}.json`, "application/json", JSON.stringify(items, null, 1));
    },
    svg: (button, name) => image(button, name, "svg"),
    png: (button, name) => image(button, name, "png"),
    copy: async (button) => {
      const pre = button.closest(".taken").querySelector("pre");
      try {
        await navigator.clipboard.writeText(pre.textContent);
        button.textContent = "Copied";
      } catch {
        // Without permission the text is selected, to be copied by keyboard.
        window.getSelection().selectAllChildren(pre);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, COPIED_MS);
    },
  };

  const keep = async (button) => {
    const said = byId("kept");
    const headers = { "Content-Type": "application/json" };
    const link = (text, href) => element("a", text, { href });
    try {
      const response = await plainFetch(
        "/v1/plans", withKey({ method: "POST", headers, body: button.dataset.body }),
      );
      if (!response.ok) {
        said.textContent = await problemOf(response);
        return;
      }
      const { id } = await response.json();
      const { economics, terminology } = button.dataset;
      said.replaceChildren(
        `Kept as ${id}: `, link("read it", `/v1/plans/${id}`), ", ",
        link("compare it with an API", `${economics}&plan_id=${id}`), ", ",
        link("check a text against it", `${terminology}&plan_id=${id}`),
      );
    } catch {
      said.textContent = "The service does not answer.";
    }
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.export) {
      Promise.resolve(exporters[button.dataset.export](button, button.dataset.name))
        .catch(() => tell(UNDRAWN));
    } else if (button?.classList.contains("keep")) keep(button);
  });
  // The form has no button to send it: Enter would load the page anew.
  document.addEventListener("submit", (event) => event.preventDefault());
})();
