"use strict";

// What the pages do by themselves: keep their state in the address, send the API key along, say what
// went wrong, save figures, copy texts, and keep a plan.
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

  // Dash asks through this for every change of a page. What it makes of an error it would only
  // write on the console: it is told here, and to Dash that nothing changes.
  const nothingNew = () => new Response(null, { status: 204 });
  window.fetch = async (resource, options) => {
    const asks = String(resource?.url ?? resource).includes("_dash-update-component");
    if (!asks) return plainFetch(resource, options);
    try {
      const response = await plainFetch(resource, withKey(options));
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
    ["[data-table]", fill], ["[data-text]", offer], ["label[role=option]:has(input)", mend],
  ];
  new MutationObserver((changes) => {
    changes.forEach(({ type, target, addedNodes }) => {
      const nodes = type === "attributes" ? [target] : addedNodes;
      nodes.forEach((node) => repairs.forEach(([selector, repair]) => {
        if (node.matches?.(selector)) repair(node);
        if (type !== "attributes") node.querySelectorAll?.(selector).forEach(repair);
      }));
    });
  }).observe(document, {
    subtree: true, childList: true, attributeFilter: ["data-table", "role", "aria-selected"],
  });

  const tableOf = (figure) => {
    const { columns, rows } = JSON.parse(figure.querySelector("[data-table]").dataset.table);
    return { heads: columns.map(([name]) => name), lines: rows };
  };

  const csvCell = (value) => {
    const text = value === null ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };

  const image = (button, filename, format) => {
    const graph = button.closest("figure").querySelector(".js-plotly-plot");
    const layout = { ...graph.layout, paper_bgcolor: "#ffffff", autosize: false, ...PICTURE };
    const scale = format === "png" ? 2 : 1;
    return window.Plotly.downloadImage(
      { data: graph.data, layout }, { filename, format, scale, ...PICTURE },
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
    if (button?.dataset.export) exporters[button.dataset.export](button, button.dataset.name);
    else if (button?.classList.contains("keep")) keep(button);
  });
  // The form has no button to send it: Enter would load the page anew.
  document.addEventListener("submit", (event) => event.preventDefault());
})();
