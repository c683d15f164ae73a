// The page in a notebook: a frame with the page in it, and a port between the frame and the widget's model.
function render({ model, el }) {
  const frame = document.createElement("iframe"), { port1, port2 } = new MessageChannel();
  frame.title = "bbn explore";
  frame.style.cssText = "width: 100%; height: 620px; border: 1px solid #8888;";
  frame.setAttribute("sandbox", "allow-scripts allow-downloads");
  frame.srcdoc = model.get("page");
  frame.addEventListener("load", () => frame.contentWindow.postMessage("bbn-page", "*", [port2]), { once: true });
  let shown = "";  // what the page has, so that it is not sent back to it
  const tell = () => {
    const now = JSON.stringify(model.get("findings"));
    if (now !== shown) { shown = now; port1.postMessage({ findings: model.get("findings") }); }
  };
  port1.onmessage = ({ data }) => {
    if (data.ready) { shown = ""; tell(); return; }
    if (data.findings) { shown = JSON.stringify(data.findings); model.set("findings", data.findings); model.save_changes(); return; }
    model.send(data);
  };
  const answer = (message) => { if (message && "id" in message) port1.postMessage(message); };
  model.on("msg:custom", answer);
  model.on("change:findings", tell);
  el.append(frame);
  return () => { model.off("msg:custom", answer); model.off("change:findings", tell); port1.close(); };
}

export default { render };
