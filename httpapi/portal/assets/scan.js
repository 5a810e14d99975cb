// The QR code of a hub's label, read with the camera into the field of the serial.

const LONGEST = 60_000; // milliseconds that the camera is on

const scan = document.getElementById("scan");
const serial = document.getElementById("serial");
if (scan && serial) {
  const formats = (await window.BarcodeDetector?.getSupportedFormats?.()) ?? [];
  if (formats.includes("qr_code") && navigator.mediaDevices) {
    scan.hidden = false;
    offer(new BarcodeDetector({ formats: ["qr_code"] }));
  } else {
    document.getElementById("no-scan").hidden = false;
  }
}

function offer(detector) {
  const [button, video, text] = ["button", "video", "[role=status]"].map((part) => scan.querySelector(part));
  const label = button.textContent;
  let stream = null;
  const stop = (why = "") => {
    stream?.getTracks().forEach((track) => track.stop());
    stream = null;
    video.hidden = true;
    button.textContent = label;
    text.textContent = why;
  };
  button.addEventListener("click", async () => {
    if (stream) {
      stop();
      return;
    }
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
      video.srcObject = stream;
      video.hidden = false;
      button.textContent = scan.dataset.stop;
      text.textContent = "";
      await video.play();
      await look();
    } catch {
      stop(scan.dataset.denied);
      serial.focus();
    }
  });

  // look reads pictures until one has a serial, alone or in a longer text such as an address.
  async function look() {
    for (const end = Date.now() + LONGEST; stream; await new Promise((resolve) => setTimeout(resolve, 200))) {
      for (const { rawValue } of await detector.detect(video)) {
        const found = rawValue.match(/[a-z0-9]{2,12}(-[a-z0-9]{4}){3}(?![a-z0-9])/i);
        if (found) {
          stop();
          serial.value = found[0].toUpperCase();
          document.getElementById("site").focus();
          return;
        }
      }
      if (Date.now() > end) {
        stop(scan.dataset.none);
        serial.focus();
      }
    }
  }
}
