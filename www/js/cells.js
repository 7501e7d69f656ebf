// Fetches the notebook cells when they may have changed. The stream reports the server's state and its count of actions every
// 10 s; while no action ran in between, nothing is fetched.

// show(list): takes the cells; isRunning(): whether one of them was running.
export function createCells(api, {show, isRunning}) {
	let isReady = false, isBusy = false, counted = null, asking = false;

	async function refresh() {
		asking = true;
		try {
			const {cells} = await api.get("cells");
			// the plugin runs with the agent's rights, which could replace it
			if (Array.isArray(cells))
				show(cells.filter((c) => typeof c?.code === "string" && typeof c.clock?.started === "number" &&
					typeof c.clock.elapsed === "number").slice(-32));
		} catch {
			counted = null; // the next sample tries again
		} finally {
			asking = false;
		}
	}

	return {
		server({ready}) {
			isReady = ready.components?.plugins?.jupyter?.state === "ready";
			isBusy = ready.components?.pool_action?.busy > 0;
			if (!isReady)
				counted = null;
		},
		sample({minutes}) {
			const now = minutes.map((m) => m[0] + " " + m[1]).join();

			if (!isReady || asking || now === counted && !isBusy && !isRunning())
				return;
			counted = now;
			void refresh();
		},
	};
}
