package text

// help are the texts of the page of help, by name.
var help = map[string]string{
	"help": "Help",

	"help-attention": "What does “Needs attention” show?",
	"help-attention-text": "What people must look at now. Alarms are red: smoke, carbon monoxide, heat, leaks, " +
		"tampering, alarms, jammed locks and hubs that are offline. Warnings are amber: low batteries, " +
		"devices out of reach, faults and commands that were not carried out. An entry goes away by " +
		"itself when its cause ends. Five or more of one kind at one site are one entry. After a restart " +
		"of the service, hubs count as reconnecting for five minutes before they are alarms.",
	"help-seen": "“Mark as seen” tells your colleagues that you take care of it. The entry steps back " +
		"for everybody, and comes to the front if it happens again.",

	"help-offline": "A hub is offline. What now?",
	"help-offline-text": "Check its power and its network. It connects by itself and then reports what " +
		"happened meanwhile. Until then you see the last known values with their age, and its " +
		"devices cannot be operated from here.",

	"help-hub": "How do I add a hub?",
	"help-hub-text": "Connect the hub to power and the internet and wait until it is online. Then open " +
		"“Sites and hubs” and enter the serial on its label. The first organization that adds a hub " +
		"keeps it. Only owners and admins can add hubs.",

	"help-device": "How do I add or remove a device?",
	"help-device-text": "Open the page of its hub and choose “Add or remove devices”. Pairing stays open for " +
		"two minutes: put the device into pairing mode in that time. Locks need the code that is " +
		"printed on them.",

	"help-command": "I locked a door. Did it lock?",
	"help-command-text": "The page shows “Locking…” until the lock reports back, and then what it reports. If " +
		"it reports something else, the page says so: the lock may be jammed. If it does not answer, " +
		"look before you try again.",

	"help-roles": "Who can do what?",
	"help-roles-text": "Owners can do everything. Admins manage everything except owners. Members see " +
		"everything and operate devices. Viewers see everything and change nothing. A role holds " +
		"for all sites of the organization.",

	"help-mails": "Who gets mails about alarms?",
	"help-mails-text": "Owners and admins, unless they choose otherwise. Everyone chooses for themselves on the " +
		"page “Notifications”.",

	"help-program": "How does a program of mine get the data?",
	"help-program-text": "Create an API key with only the scopes that the program needs. The API reference lists " +
		"every call and lets you try it.",
}
