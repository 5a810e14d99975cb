// Prints the types and events of Z-Wave notifications with their labels, as testdata/labels.txt has
// them. They are facts of the public Z-Wave specification (Notification command class); the labels
// are those of the npm package @zwave-js/core. To make the file again, in an empty folder:
//
//	npm install @zwave-js/core@15.29.0
//	cp …/domain/attention/testdata/labels.mjs . && node labels.mjs > …/testdata/labels.txt
import { getAllNotifications } from "@zwave-js/core";

for (const { type, name, variables, events } of getAllNotifications()) {
  const labels = [...variables.flatMap((v) => [...v.states]), ...events].map(([id, { label }]) => [id, label]);
  for (const [id, label] of labels.sort((a, b) => a[0] - b[0])) {
    console.log([type, name, id, label].join("\t"));
  }
}
