/** Lists of words by which a name is told from what is none. */

/** A list written as a text. */
function wordSet(words: string): ReadonlySet<string> {
  return new Set(words.trim().split(/\s+/));
}

/** Written large anywhere without naming anything that the facts would have to name. */
export const capitalWords = wordSet(`
  a an and as at by for from id in it its no of on the this to utc with copernicus earth level
`);

/**
 * What an English sentence about a product may begin with, besides the words of the facts. A closed list: a word
 * that begins a sentence is written large whether it is a name or not, and only a list can tell.
 */
export const openingWords = wordSet(`
  a about above accordingly acquired acquisition acquisitions across additional additionally after all almost along
  already also although altogether among an and another any approximately archived are area areas around arrived arriving as
  at auxiliary availability available average averaging based because before began beginning being below besides between beyond both
  but by calibrated calibration captured captures capturing centred centered clear clouds cloud cloudy collected collecting
  collection combined compared completed comprising conditions contained containing contains content corrupted countries
  coverage covered covering covers created creation currently cut data dataset datasets dated day days deleted deletion
  deletions delay delays delivered delivering delivery derived describing described despite details distributed download due
  during each earlier either ending entirely especially even every extending falling few file files finally first five flying
  following footage footprint for four from full further generated given granule ground gathered half having hence here high
  hourly however identified if image imaged imagery images imaging in included includes including individual information instead
  intended is issued it item items its just kept known land largely largest last lasting late later latest launched
  least less like located location longest low made mainly many marked matching mean meanwhile measured measurement measurements
  measuring median medium minimum maximum missing modified more moreover most mostly much nearby near nearest nearly
  neither nevertheless new newer newest next night no nominal none north northern northeast northwest not notably note
  notably notification notifications nothing now observation observations observed observing obtained ocean of off older
  on once one only open operated orbit orbital orbiting other others otherwise our out outside over overall overlapping owing
  part partially partly parts pass passes passing past place places planned positioned precise predominantly present presently
  previously primarily prior processed processing processor produced product production products providing provided
  publication published publishing quality quick radiometric raw ready recorded received receipt receiving registered related
  released remaining removed replaced replacing replaces reprocessed reprocessing resolution restituted results retrieved
  roughly satellite satellites scan scanned scene scenes sea seas seen sensed sensing sensor seven several shared
  short shortest shortly shot showing shown shows similarly since single situated six size sizes slightly smallest so some
  somewhat south southern southeast southwest spanning spans spatial spread starting status still stored stretching such supplied surface
  swath taken taking temporal ten than that the their them then there therefore these they this those though three through
  throughout thus tile tiles time timeliness timely to together total totalling totaling touching toward towards two typical ultimately
  under until unlike up updated upon using usually valid validity version versions very via viewed virtually was water
  access accompanied called counting lying named nothing ordered set sized titled withdrawn
  we week weekly west western east eastern what when where whereas whether which while whole with within without worth yet
  zero
`);

/**
 * Places that are ordinary words when they are written small: `reading the data`, `split over two tiles`. All
 * names of the place data that are English words in use; the others count as places in any case.
 */
export const ordinaryPlaceWords = wordSet(`
  along archway aurora bath bender billings boulder buffalo concord cork corona delta derby enterprise garland gent
  hail independence lens male man manta mary mascara metro mobile most nice of offa oral orange paradise perm phoenix
  pole queens reading riverside saga sale same shaping slough split surprise tours van victoria vista warren
`);

/**
 * Names and terms of the field that are names in small letters too: each says what a product is, and is found
 * in its facts where it is true.
 */
export const fieldWords = wordSet(`
  sentinel landsat envisat modis viirs smos cryosat metop jason radarsat terrasar tandem worldview pleiades
  planetscope rapideye prisma enmap icesat grace swot aeolus proba
  msi olci slstr sral tropomi oli tirs aster meris etm avhrr
  radar altimeter altimetry ascending descending
  methane ozone formaldehyde aerosol aerosols monoxide dioxide
  esa nasa airbus thales eumetsat ecmwf usgs noaa jaxa isro cnes dlr roscosmos spacex maxar esri cloudferro
`);

/** Weather, and what happens to land and sea: found in the facts where it is true, as no model has seen the image. */
export const conditionWords = wordSet(`
  snow snowy rain rains rainy rainfall fog foggy haze hazy mist misty ice icy hailstorm frost frozen drizzle lightning
  storm storms stormy thunderstorm thunderstorms hurricane typhoon cyclone tornado flood floods flooded flooding drought
  fire fires wildfire wildfires smoke dust dusty ash sandstorm earthquake eruption volcano volcanic landslide tsunami
  sunny sunshine overcast windy cloudless cloud-free
`);

/** What follows a participle that begins a sentence. */
export const beforeParticiple =
  /^,? (?:in|on|at|by|over|from|with|within|between|near|as|to|the|a|an|its|for|along|under|just|across|around|about|after|against|through|mainly|mostly|entirely|partly|largely|all|both|each|every|this|these) /;
