// The texts of the page's scripts. Those that pages share come with the page (scriptTexts).

const LONGEST_VALUE = 200; // characters of a value in a text

const own = {
  "feed-no-match": "No matching events. New matching events appear here.",
  "feed-empty": "Nothing new since this page was opened. New events appear here.",
  "device-number": "Device {number}",
  "severity 2": "Warning",
  "severity 3": "Alarm",
  "chart-always": "always {low}",
  "chart-range": "{low} to {high}",
  "chart-time": "Time",
  live: "Live",
  connecting: "Connecting…",
  "stream-signed-out": "Not live: your session has ended.",
  "stream-no-member": "You are no longer a member of this organization.",
  "stream-released": "This hub was removed from the organization, or you are no longer a member.",
  "stream-signed-in-anew": "Not live: you signed in again after this page was loaded.",
  "feed-new": "{number} new",
  "feed-new-kept": "{number} new, the newest {kept} kept",
  "feed-pause": "Pause",
  "feed-resume": "Resume",
  "feed-resume-new": "Resume ({new})",
  "feed-held": "Paused while you point here: {number} new",
  found: "Results: {number}",
  "channel-done": "{device}: {channel} {value}.",
  "hub-left": "{name} was removed from the organization.",
  "hub-left-site": "{name} is no longer at this site.",
  "hub-is": "{name} is {status}.",
  "hub-status": "The hub is {status}.",
  "hub-status-reason": "The hub is {status}: {reason}",
  "hubs-changed": "{number} hubs changed their status.",
  "a-device": "A device",
  "device-joined": "{name} has joined.",
  "device-joined-as": "{name} has joined as device {number}. Set its name and room on its page.",
  "device-removed": "The device was removed.",
  "devices-old": "The hub does not answer. These are the last known values; they update when the hub answers. Commands do not work now.",
  "channel-failed": "{device}: {channel} is not set. The command failed.",
  "channel-diverged": "{device}: {channel} is different from the command.",
  "command-session": "Not sent: your session has ended.",
  "command-failed": "The command failed. Reload the page.",
  "command-unreachable": "The service cannot be reached. Try again.",
  "pairing-closed": "Pairing is closed",
  "removal-closed": "Removal is closed",
  "pairing-timed-out": "No device has joined. Open pairing again when the device is ready.",
  "removal-timed-out": "No device was removed.",
  "window-left": "in {seconds} s",
  "chart-zone": "Times in {zone}. Point at a chart, or press the arrow keys at one, to see its values.",
  reconnecting: "Connection lost. Reconnecting…",
  outage: "Connection lost. Values as of {time}. Commands work again when it is back.",
  "outage-retry": "Try now",
  "outage-control": "Commands can be sent when the connection is back.",
  "session-ended": "Your session has ended. What you typed is kept.",
  "signed-in-anew": "You signed in again after this page was loaded. What you typed is kept.",
  "sign-in": "Sign in",
  "view-device": "View device",
  reload: "Reload the page",
  draft: "Your session ended before this was saved. Check the form and send it again.",
};

let texts = new Map();

export function setTexts(byName) {
  texts = new Map(Object.entries(byName));
}

export const hasText = (name) => texts.has(name);

// textOf returns the text of that name, with values in place of its placeholders. A value that is
// missing is a dash.
export const textOf = (name, values = {}) => (own[name] ?? texts.get(name) ?? name).replace(/\{(\w+)\}/g, (_, key) => truncate(String(values[key] ?? "–"), LONGEST_VALUE));

// truncate returns the first characters of a text, with an ellipsis if more follow.
export const truncate = (text, longest) => (text.length > longest ? `${[...text.slice(0, 2 * longest)].slice(0, longest).join("")}…` : text);
