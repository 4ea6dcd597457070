# ruff: noqa: E501 - a table of expressions reads better in long lines
"""Phrasings that speak to a model, in nine languages and some more for the commonest: rules with a name and a weight.

A rule is looked for only around its hints (literals, one of which is in every match), so a text without them costs a
scan. Weights: 1.0 flags alone; what ordinary pages also say weighs less and needs company within a few hundred
characters. A phrase that a report *quotes* ("attackers hide phrases such as …") weighs a third: news about attacks are
no attacks. That discount can be abused, and is the price of an alarm that people keep switched on.

Written from kinds of attack, never from entries of a test set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice, repeat
from operator import eq
from typing import Final

from toolcage.cleaning.injection.signals import LONGEST_EXCERPT, Reading, Signal

_BEFORE, _AFTER = 60, 260

_W = r"(?:\W{1,3}\w{1,20})"
_OLD = (
    r"(?:previous\w*|prior|above|earlier|preceding|foregoing|existing|original|initial|system|safety|past|former|other|current"
    r"|these|those|your|my|the|any|all|every)"
)
_ORDERS = (
    r"(?:instructions?|prompts?|rules?|directions?|directives?|guidelines?|commands?|programming|training|context|orders?"
    r"|constraints?|restrictions?|tasks?|policies|guardrails?|safeguards?|filters?|configuration)"
)
_DROP = (
    r"(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?|overrid(?:e|ing)|bypass(?:ing)?|overlook|neglect|discard|abandon"
    r"|set aside|pay no attention to|stop following|do not follow|don't follow|no longer follow|cancel|delete|drop|skip)"
)
_ASKED_FOR = (
    r"(?:pass ?words?|pass ?codes?|pass ?phrases?|secret (?:key|code|word|phrase|string)s?|api[ -]?keys?|credentials?"
    r"|access tokens?|private keys?|confidential (?:string|code|key)|login details|pin code)"
)
_MODEL = (
    r"(?:ai|a\.i\.|llms?|(?:large )?language models?|chat ?bots?|assistants?|gpt|chatgpt|claude|gemini|copilot|agents?)"
)
_GAP = r"[^\w.!?\n]{1,3}"
_LEAVE = (
    r"(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?(?: about)?|skip(?:ping)?|overlook|(?:set|put|setting|putting) aside|leav(?:e|ing) (?:out|aside)"
    r"|pay no (?:heed|attention) to|take no notice of|never mind|(?:do not|don't) (?:mind|read|use|follow))"
)
_SAY = (
    r"(?:state|say|write|answer|reply|respond|report|claim|conclude|declare|assert|announce|print|output|put down"
    r"|tell (?:\w{1,16} ){1,4}?|inform (?:\w{1,16} ){1,3}?)"
)

_TABLE: Final[tuple[tuple[str, float, str, str], ...]] = (
    # --- dropping what the model was told
    ("override", 1.0, "ignor|disregard|forget|overrid|bypass|overlook|neglect|discard|abandon|set aside|no attention|follow",
     rf"{_DROP}{_W}{{0,4}}?\W{{1,3}}(?:previous\w*|prior|above|earlier|preceding|foregoing|existing|original|initial|system"
     rf"|your|safety|past|former){_W}{{0,3}}?\W{{1,3}}(?<!\w\.){_ORDERS}\b"),
    ("override", 1.0, "ignor|disregard|forget|overlook",
     rf"(?:ignore|forget|disregard|overlook)\W{{1,3}}(?:all|everything|everthing|every|anything|what(?:ever)?)\b{_W}{{0,3}}?"
     rf"\W{{1,3}}(?:instruct(?:ions?|ed)|prompts?|rules|before|above|told|said|learned|(?:have|had|'ve)\W{{1,3}}been\W{{1,3}}\w+)\b"),
    ("override", 1.0, "ignor|disregard|forget",
     r"(?:ignore|disregard|forget)\W{1,3}(?:all\W{1,3})?(?:of\W{1,3})?(?:the|everything)\W{1,3}(?:above|previous|foregoing)"
     r"\W{1,4}(?:and|instead|just|then|now|but|to|text|content|message|you)\b"),
    ("override", 1.0, "what you were|what you are doing|told|you were given|you were asked|you have been",
     r"(?:forget|ignore|disregard|set aside|never mind)\W{1,3}(?:\w{1,12}\W{1,3}){0,3}?(?:you (?:were|have been|had been) (?:\w{1,12} )?(?:told|given|asked|instructed|taught|trained)|the (?:question|user) (?:the user )?asked)|stop what you(?:'re| are) doing(?: now| immediately)?,? and\b"
     r"|(?:do not|don't) follow the user's|(?:task|job|request) (?:that )?you were given (?:has been|is|was) (?:cancell?ed|replaced|changed|over|void)"),
    ("override", 1.0, "longer apply|outdated|need to follow|no longer valid|no longer bound|not bound|no rules",
     r"your (?:\w{1,12} ){0,2}?(?:rules|instructions|guidelines|restrictions|prompt|task)\b[^.\n]{0,30}\b(?:no longer (?:apply|valid|count)|outdated|void|cancell?ed|suspended|lifted|replaced)|you (?:do not|don't|no longer) (?:need|have) to follow (?:your|any|the)\b[^.\n]{0,16}(?:rules|guidelines|instructions|polic)"
     r"|you (?:are|have been) (?:no longer|not) bound by|you have no rules"),
    ("override", 1.0, "regardless", rf"regardless of what you were|regardless of{_W}{{0,2}}\W{{1,3}}(?:previous|prior|earlier|other){_W}{{0,1}}\W{{1,3}}{_ORDERS}"),
    ("override", 1.0, "ignor|disregard|forget|skip|overlook|aside|leave out|leaving out|heed|attention to|notice of|never mind|do not |don't ",
     rf"\b{_LEAVE}{_GAP}(?:\w{{1,20}}['\u2019]?{_GAP}){{1,6}}?(?:and|just|instead|then|but|simply){_GAP}(?!(?:if|you|we|they|i|he|she|when)\b)(?:\w{{1,12}}{_GAP}){{0,2}}?"
     rf"{_SAY}(?: ?(?:instead|only|just|simply))?(?:\s{{0,2}}:|\s{{0,2}}[\"\u201c'\u2018]|\s{{0,2}}that\b)"),
    ("override", 0.8, "ignor|disregard|forget|skip|overlook|aside|leave out|leaving out|heed|attention to|notice of|never mind|do not |don't ",
     rf"\b{_LEAVE}{_GAP}(?:the|this|that|these|those|all){_GAP}(?:\w{{1,20}}['\u2019]?{_GAP}){{1,4}}?(?:and|just|instead|then|but|simply)"
     rf"{_GAP}(?!(?:if|you|we|they|i|he|she|when)\b)(?:\w{{1,12}}{_GAP}){{0,2}}?{_SAY}\b"),
    ("override", 1.0, "ignor|disregard|forget|skip|overlook|aside|leave out|heed|attention to|notice of|never mind",
     rf"\b{_LEAVE}{_GAP}(?:the|this|that|these|those|all){_GAP}(?:\w{{1,20}}['\u2019]?{_GAP}){{0,2}}\w{{1,20}}\s?[.;:!]\s{{1,2}}(?:just |simply |instead,? |only |please )?"
     rf"{_SAY}(?:\s{{0,2}}:|\s{{0,2}}[\"\u201c]|\s{{1,2}}(?:that|it|there|instead)\b)"),
    ("override", 1.0, "ignor|vergiss|vergess|missacht|beacht|übersp", r"\b(?:ignorier(?:e|en sie)|vergiss|vergessen sie|missachten? sie|beachten? sie|überspring(?:e|en sie))\b[^.!?\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{2,70}?\W(?:und|sondern)\W{1,3}"
     r"(?:\w{1,12}\W{1,3}){0,3}?(?:sag\w{0,3}|schreib\w*|antwort\w*|behaupt\w*|gib|geben sie|nenn\w*|teil\w* \w+ mit|meld\w*|berichte\w*)\b"),
    ("override", 1.0, "ignore|oubli|néglig|pas compte|abstraction|de côté",
     r"\b(?:ignore[zr]?|oublie[zr]?|négligez?|ne ten\w+ pas compte|ne tien\w+ pas compte|fai(?:s|tes) abstraction|laisse[zr]? de côté)\b[^.!?\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{2,70}?(?:\bet|\bpuis)\W{1,3}"
     r"(?:\w{1,12}\W{1,3}){0,2}?(?:dis|dites|répond\w*|écri(?:s|vez|re)|affirme\w*|indique\w*|concl\w+|déclare[zr]?|annonce[zr]?)\b"),
    ("override", 1.0, "ignor|olvid|no hag|prescind|omit|por alto",
     r"\b(?:ignor(?:a|e|en|ad)|olvid(?:a|e|en|ad)|no hag\w+ caso|prescind(?:e|a|an)|omit(?:e|a|an)|pas[ae]n? por alto)\b[^.!?\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{2,70}?\by\W{1,3}"
     r"(?:\w{1,12}\W{1,3}){0,2}?(?:di|diga[ns]?|respond[ea]n?|contest[ae]n?|escrib[ea]n?|afirm[ae]n?|indi(?:ca|que|quen)|concluy[ea]n?|declar[ae]n?)\b"),
    ("override", 1.0, "ignor|dimentic|trascur|lascia|non consider|non tener",
     r"\b(?:ignor(?:a|i|ate|are)|dimentica(?:te|re)?|trascura(?:te|re)?|lascia(?:te)? (?:stare|perdere)|non (?:considera\w*|tener\w*))\b[^.!?\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{2,70}?\bed?\W{1,3}"
     r"(?:\w{1,12}\W{1,3}){0,2}?(?:di['\u2019]|dica|dite|rispond[ia]\w{0,2}|scriv[ia]\w{0,2}|afferm[ai]\w{0,2}|indic[ha]\w{0,3}|concludi|dichiara)"),
    ("override", 1.0, "ignor|esque|desconsider|desprez|não lev|não consider",
     r"\b(?:ignor(?:e|a|em)|esque[cç]a[ms]?|desconsider(?:e|a|em)|desprez(?:e|a|em)|não (?:leve|considere)\w*)\b[^.!?\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{2,70}?\be\W{1,3}"
     r"(?:\w{1,12}\W{1,3}){0,2}?(?:diga[m]?|respond[ae]m?|escrev[ae]m?|afirm[ae]m?|indique[m]?|conclua[m]?|declare[m]?|informe[m]?)\b"),
    ("override", 1.0, "negeer|vergeet|zignoruj|ignoruj|zapom|pomiń|pomij|ignorer|glöm|glem|bort fr|yok say|görmezden|unut|abaikan|lupakan|bỏ qua|hãy quên|phớt lờ",
     r"\b(?:negeer|vergeet)\b[^.!?\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{2,60}?\ben (?:\w{1,12} ){0,2}?(?:zeg|schrijf|antwoord|beweer|meld)\b"
     r"|\b(?:z?ignoruj\w*|zapom(?:nij|eň)\w*|pomiń\w*|pomij\w*)\b[^.!?\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{2,60}?\b(?:i|oraz|a) (?:\w{1,12} ){0,2}?(?:napisz\w*|powiedz\w*|odpowiedz\w*|stwierdź\w*|podaj\w*|napiš\w*|řekni\w*|odpověz\w*|uveď\w*)"
     r"|\b(?:ignorera?|glöm|glem|se bort fr(?:ån|a))\b[^.!?\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{2,60}?\b(?:och|og) (?:\w{1,12} ){0,2}?(?:säg|si|sig|skriv|svara?|påstå)\b"
     r"|\b(?:yok say|görmezden gel|unut)(?:[ıiu]n(?:[ıiu]z)?)?\b[^.!?\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{0,70}?\b(?:söyle(?:yin)?|yaz(?:ın)?|cevap ver(?:in)?|yanıtla(?:yın)?|belirt(?:in)?)\b"
     r"|\b(?:abaikan|lupakan)\b[^.!?\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{2,60}?\b(?:dan|lalu) (?:\w{1,12} ){0,2}?(?:katakan|tulis\w*|jawab\w*|sebutkan|nyatakan)\b"
     r"|\b(?:bỏ qua|hãy quên|phớt lờ)\b[^.!?\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{2,60}?\b(?:và|rồi|hãy) (?:\w{1,8} ){0,2}?(?:nói|viết|trả lời|ghi|báo)\b"),
    ("override", 1.0, "игнорир|забудь|внимания|ігноруй|αγνο|ξέχνα|ξεχάστε|忽略|无视|無視|不要理会|忘记|忘掉|不用管|忘れ|무시|잊|تجاهل|انس|अनदेखा|नज़रअंदाज़|भूल|התעלם|שכח",
     r"(?:игнорир\w+|забудь\w*|не обращай\w* внимания|ігноруй\w*)\b[^.!?\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{2,70}?(?:\bи|\bі|\bй|\bта|,) (?:\w{1,12} ){0,2}?(?:скажи\w*|напиши\w*|ответь\w*|укажи\w*|сообщи\w*|утверждай\w*|заяви\w*|відповідай\w*)"
     r"|(?:αγνόησε|αγνοήστε|ξέχνα|ξεχάστε)\b[^.!;\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{2,70}?\bκαι (?:\w{1,12} ){0,2}?(?:πες|πείτε|γράψε|γράψτε|απάντησε|απαντήστε|δήλωσε)"
     r"|(?:忽略|无视|無視|不要理会|忘记|忘掉|不用管)[^。！？\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{1,30}?(?:并且?|並且?|而|且|然后|直接|只|请|請|就)(?:说|說|写|寫|回答|回复|回覆|声称|聲稱|指出|输出|輸出|告诉|告訴|表示)"
     r"|(?:無視|忘れ)[^。！？\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{1,30}?(?:書い|言っ|答え|述べ|伝え|出力し|主張し|結論づけ)(?:て|ろ|なさい)"
     r"|(?:무시|잊)[^.!?\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{1,40}?(?:말하|말해|쓰세|쓰라|써|답하|답해|적어|적으|출력|알려|대답)"
     r"|(?:تجاهل|انس)\w*[^.!؟\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{2,60}?\s(?:وقل|واكتب|وأجب|واذكر|وأخبر|ثم قل|وصرح)"
     r"|(?:अनदेखा|नज़रअंदाज़|भूल)[^।!?\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{2,60}?(?:कहो|कहें|लिखो|लिखें|बताओ|बताएं|बताएँ|उत्तर)"
     r"|(?:התעלם|התעלמו|שכח|שכחו)[^.!?\n\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{2,60}?\s(?:ואמור|ואמרו|וכתוב|וכתבו|וענה|וענו|תגיד)"),
    ("override", 0.7, "supersede|override|overrule|take precedence|takes precedence|replaces all",
     rf"(?:supersedes?|overrid(?:es?|ing)|overrules?|takes? precedence over|replaces? all){_W}{{0,4}}?\W{{1,3}}{_OLD}?{_W}{{0,2}}?\W{{1,3}}{_ORDERS}"),
    ("override", 0.8, "new instruction|new task|new directive|new order|updated instruction|real instruction|actual instruction|"
     "following instruction|revised instruction",
     r"(?:new|updated|real|actual|revised|following)\W{1,3}(?:system\W{1,3}|important\W{1,3}|urgent\W{1,3}|priority\W{1,3})?"
     r"(?:instructions?|directives?|orders?|task)\b(?:\s{0,3}[:\]>]|\W{1,3}(?:for you|(?:for|to) (?:the )?(?:ai|chat|assistant|model|agent)|are as"
     r" follows|must be|instead))"),
    ("override", 0.8, "your new", r"\byour new (?:task|goal|objective|instructions?|directives?|mission|purpose|prime directive)s? (?:is|are)\b(?: to\b|\s?:| as follows)"),
    ("conditional", 0.8, "told to|asked to|requested to|instructed to|prompted to",
     r"\b(?:if|when(?:ever)?|in case|every time|each time|once) you(?: are|'re|\u2019re| get| ever get)? (?:being |ever )?(?:told|asked|requested|instructed|prompted) to"
     r" (?:summari[sz]e|answer|translate|respond|reply|describe|analy[sz]e|process|rewrite|explain|classify|rate|evaluate|condense|paraphrase)\b"
     r"[^.!?\n]{0,80}\b(?:instead|also|make sure|be sure|always|only|you must|you should|include|add|append|say|state|reply|respond|write|output|print|send)\b"),
    ("override", 0.9, "before you can|after you do that|strictly adhere|first before|before answering|before responding|"
     "before continuing|prior to answering|adhere to",
     r"(?:before you (?:can )?(?:solve|continue|complete|finish|proceed|answer|do)[^.\n]{0,60}(?:please|you must|first|need to"
     r"|have to)|strictly adhere to the following|(?:before|prior to) (?:answering|responding|continuing|proceeding)[^.\n]{0,50}"
     r"(?:you must|please (?:do|first|make|send)|first (?:send|call|run|execute|do)))"),
    # --- who is spoken to
    ("addresses_model", 0.75, " ai|:ai|assistant|llm|language model|chatbot|agent|gpt|claude|gemini|copilot",
     rf"(?:attention|notice|note (?:to|for)|important(?: message| note| notice| information)? (?:to|for)|message (?:to|for)"
     rf"|instructions? (?:to|for)|directive for|hey|hi|hello|dear),? ?:? ?(?:the |any |all |this |you,? )?(?:reading |automated |autonomous |intelligent "
     rf"|helpful )?{_MODEL}\b(?! (?:manager|director|professor|editor|coach|secretary|principal))"),
    ("addresses_model", 1.0, "to you, |you, the", rf"\b(?:message|request|note|instruction)s?\b[^.\n]{{0,40}}\bto you, (?:the |my |dear )?(?:{_MODEL}|[a-z]+ (?:ai|assistant|model))\b"
     rf"|\bwhen you, the {_MODEL}\b"),
    ("addresses_model", 0.8, "systems that|models that|agents that|assistants that|for llms|for ais|automated readers|llms only|to the model:|assistants only",
     rf"{_MODEL}(?: system| agent| model)?s? (?:that|which|who) (?:read|summari[sz]e|process|parse|see|visit)[^.\n]{{0,50}}\b(?:must|should|have to|need to|are required)|for (?:llms|ais|automated readers|ai assistants)\b(?: only)?:|to the model:"),
    ("addresses_model", 0.7, "you are an|if you are|if you're|as an ai|as a language|as a large",
     rf"(?:if you(?: are|'re)|as) (?:an? |the )?{_MODEL}\b(?:[^.\n]{{0,50}})(?:reading|processing|summari[sz]ing|must|should|you|please"
     rf"|,)"),
    ("addresses_model", 0.9, "developed by|trained by|created by|made by",
     r"as an? (?:ai|assistant|language model|chatbot)[^.\n]{0,20}(?:developed|trained|created|made|built) by"),
    ("addresses_model", 0.9, "for any|to any|for the|to the|for all|to all|llm instruction|ai instruction|model instruction|assistant instruction|chatbot instruction|for ai|for llm|to ai",
     rf"\b(?:message|note|notice|instructions?|directive|order|reminder|attention)s? (?:for|to) (?:any |the |all |every )?(?:reading |automated |summari[sz]ing )?{_MODEL}s?\b[^.\n:]{{0,40}}:|\b{_MODEL}s? instructions?\s?:"),
    ("addresses_model", 1.0, "if an|if a |if any|ai agent|assistants|ai assistant|language model|llms|any ai|chatbots|bots|the assistant",
     rf"\b(?:if (?:an?|any) )?(?:ai |any )?{_MODEL}s?(?: (?:system|agent|model|assistant)s?)? (?:is |are |that (?:is |are )?|who |which )?(?:reading|processing|parsing|summari[sz]ing|evaluating|reviewing|handling|crawling|reads?|process(?:es)?) (?:this|the)\b[^.\n]{{0,60}}\b(?:must|should|have to|has to|need to|are to|is to|are required|shall|will)\b"),
    ("addresses_model", 1.0, "assistant,|assistant:|assistant |chatbot,|chatbot:|model,|copilot,|chatgpt,|claude,|gemini,|ai,|agent,",
     r"(?:\A|\n|[.!?:>#*|-] ?|(?<=[\"\u201c]))\s{0,4}(?:dear |hey |hello |ok |okay )?(?:ai |the )?(?:assistant|chatbot|language model|copilot|chatgpt|claude|gemini|ai agent|ai)[,:] ?(?:please|kindly|do not|don't|you (?:must|should|have|need)|ignore|send|run|forward|tell|write|print|reveal|delete|call|use|stop|remember|output|execute|open|add|include|respond|reply|always|never) "),
    ("override", 1.0, "user's request|user's question|user's message|user's instruction|the user's|user asked",
     r"(?:overlook|ignore|disregard|forget|skip|neglect|drop)\W{1,3}(?:\w{1,12}\W{1,3}){0,2}?the user['\u2019]s (?:\w{1,12} )?(?:request|question|message|instructions?|task|query|prompt)"),
    ("override", 1.0, "you got|you were given|you received|task has changed|assignment has changed|from here on|from now on|aside",
     r"(?:instructions?|directions?|directives?|rules|orders|prompt|guidelines) (?:that )?you (?:got|were given|received|had|have been given)\b[^.\n]{0,50}(?:obsolete|outdated|void|wrong|cancell?ed|over|invalid|replaced)|\b(?:the|your) (?:task|assignment|job|goal|mission) has (?:now )?changed\b"
     r"|from (?:here|now) on,? you (?:will |must |should |only )?(?:answer|respond|reply|act|speak|write)\b|(?:set|put|leave) your (?:\w{1,12} )?(?:instructions|directions|guidelines|rules|orders|task) aside"),
    ("asks_secret", 1.0, "api key|system prompt|passphrase|access token|hidden instructions|credential|password",
     r"(?:write|compose|encode|translate|put|express|spell|convert|turn|hide|embed)\b[^.\n]{0,40}\b(?:your|the (?:system|admin|secret|hidden))\b[^.\n]{0,24}(?:api key|prompt|passphrase|token|instructions|credentials?|password)|(?:poem|haiku|song|story|limerick|riddle|acrostic)\b[^.\n]{0,30}(?:contain|with|about|spell)\w*\b[^.\n]{0,10}\b(?:your|the secret)\b[^.\n]{0,20}(?:key|password|prompt|token|code)"),
    ("exfiltrate", 1.0, "id_rsa|.ssh|/etc/passwd|/etc/shadow|.env|environment variable|credentials|secrets",
     r"(?:read|open|take|get|cat|collect|use|find)\b[^\n]{0,60}(?:id_rsa|\.ssh/|/etc/(?:passwd|shadow)|\.env\b|environment variables|credentials|secrets)[^\n]{0,60}\b(?:post|send|upload|forward|e-?mail|transmit|submit|include)\b"),
    ("calls_tool", 1.0, "before you|first, |before doing|before anything",
     r"before (?:you (?:finish|answer|respond|reply|continue|do|begin|start|can|complete|go)|doing|anything)[^.\n]{0,30}[,:]? ?(?:please |first |you must )?(?:call|use|invoke|run|execute|send|forward|email|transfer|upload|delete)\b"),
    ("calls_tool", 0.7, "_tool| tool|function", r"(?:call|use|invoke|run|execute|trigger) (?:the )?[`'\"]?\w{2,30}[`'\"]? (?:tool|function) (?:with|to|on|and|for)\b"),
    ("exfiltrate", 0.7, "@", r"(?:invite|add) \S{3,60}@\S{3,60} (?:to|as)\b[^.\n]{0,60}(?:workspace|channel|owner|admin|group|team|folder|rights)|(?:send|forward|e-?mail|share|mail|upload)\b[^.\n]{0,60}(?:list|files?|emails?|contacts|thread|messages|documents|conversation|everything)\b[^.\n]{0,20}\b(?:to|with) \S{2,60}@"),
    ("secrecy", 1.0, "المستخدم", r"لا (?:تخبر|تذكر|تقل)[^.\n]{0,24}المستخدم[^.\n]{0,12}و"),
    ("asks_secret", 0.9, "كلمة السر|كلمة المرور", r"(?:اكتب|أعط|أخبر|اعرض|أظهر|أرسل)\w*[^.\n]{0,24}كلمة (?:السر|المرور)"),
    # --- another self
    ("role", 0.8, "you are now|you're now|from now on|pretend|act as|roleplay|role-play|role play|you will now|you are going to act|"
     "you shall now|take on the role|simulate",
     r"(?:(?:you are|you're|you will be) (?:now|no longer|going to (?:act|be|pretend|play|simulate))(?! (?:on|in|at|able|ready|logged"
     r"|signed|subscribed|connected|registered|leaving|eligible|enrolled|required|entitled|following))\b|from now on,? (?:you|your|act|respond"
     r"|answer|every)|you (?:will|shall|must) now (?:act|respond|answer|behave|be|become|play|pretend|simulate)|pretend (?:to be (?!offline|online|a \w+ (?:server|client|browser|terminal|tty|file))|that"
     r" you|you)|act as (?:if you|though you|an? (?:unrestricted|unfiltered|evil|ai|amoral|linux|dan|different|hacker|language|chatbot))"
     r"|take on the role of|simulate (?:a |an )?(?:persona|character|dan|ai|chatbot|developer))"),
    ("jailbreak", 0.5, "jailbreak|jailbroken", r"jailbr(?:eak|oken)"),
    ("jailbreak", 1.0, "developer mode|do anything now|no restrictions|unfiltered|no ethical|without restrictions|uncensored|"
     "without any restrictions|in character|no moral|never refuse|cannot refuse|can't refuse|amoral|no limitations|break character|"
     "breaking character|content policy|freed from|no filter|without filter|without any filter|never says|unhinged|any ethical|without ethical|"
     "never warns|immoral|free of all|freed of|doesn't refuse|not refuse|bypassing|bypasses|unethical",
     r"(?:(?:enable|enabled|enter|activate|in|with|simulate|called) (?:the )?developer mode\b[^.\n]{0,80}(?:you|chatgpt|output|response|answer|assistant|enabled)|\bdo anything now"
     r"|\b(?:you|it|he|she|they|who|ai|bot|chatbot|gpt|assistant|character|persona|\w{2,14}gpt|responses?|answers?)\b[^.\n]{0,60}\b(?:no|any|without|free of|of|from|doesn't have|not have) (?:\w+ ){0,2}?(?:restrictions|limitations|filters?|ethic(?:s|al)|morals?|censorship|rules and)\b"
     r"|unfiltered (?:\w+ )?(?:ai|response|mode|answer|version|chatbot|manner|assistant)|uncensored (?:\w+ )?(?:ai|response|mode|answer|model|output|content)"
     r"|(?:stays?|remain|staying) in character\b[^\n]{0,60}(?:whatever|no matter|always|at all times|never|even|until|and|!|\.)|(?:never|not|don't|without) break(?:s|ing)? (?:the |your )?character"
     r"|(?:never|cannot|can't|won't|must not|not|doesn.t|does not|will not) (?:ever )?refuses?\b[^.\n]{0,30}(?:request|answer|question|order|prompt|task|to|any)"
     r"|(?:no matter (?:how|if|what|whether)|regardless of (?:how|whether)|even if|however)\b[^.\n]{0,50}(?:immoral|unethical|illegal|harmful|offensive|dangerous)"
     r"|\b(?:amoral|unhinged|immoral|unethical)\b[^.\n]{0,50}(?:\bai\b|bot\b|gpt|assistant|response|answer|advice|manner|persona|character)|never says? (?:that )?(?:it|he|she|i)? ?(?:is|am|can)? ?(?:sorry|cannot|can't|no\b)"
     r"|openai'?s? (?:content )?polic|(?:been |is )freed (?:from|of)|bypass(?:ing|es)? (?:\w+ ){0,3}?(?:moral|ethical|safety|censor|content|openai|guideline)"
     r"|(?:ignor(?:e|ing|es)|disregard(?:ing|s)?) (?:all |any )?(?:\w+ ){0,2}?(?:ethic|moral|legal|law)\w*)"),
    ("role", 0.6, "respond as|answer as|reply as|act as|play the role|you will play|i want you to act|i want you to play|play 2 characters|play two characters|two responses|two answers|two ways|speak as|write as",
     r"(?:respond|answer|reply|speak|write) (?:only )?as (?!soon|far|much|many|long|well|quickly|possible|follows|a result|usual|if (?!you)|it\b|they\b|he\b)\w{2,20}\b|(?:i want you to|you will|you are going to|please) (?:act|play|pretend|roleplay)\b|play the role of|play (?:2|two) characters|(?:two|2) (?:different )?(?:responses|answers|ways)\b[^.\n]{0,60}(?:as|with|normal|first|one)"),
    ("jailbreak", 0.6, "chatgpt|openai|gpt", r"(?:chatgpt|openai|gpt)[^.\n]{0,80}(?:pretend|persona|character|evil|ignore|bypass|illegal|refus"
     r"|unethical|restriction|guideline|policy|policies)"),
    ("system_mode", 1.0, "mode|override|directive|console|operator",
     r"[<\[*({]{1,3}\s?[^<>\[\]\n]{0,50}\b(?:mode|override|directive|console|operator)\b[^<>\[\]\n]{0,40}[>\]*)}]{1,3}[\s:,.-]{0,4}(?:please |now )?"
     r"(?:display|print|tell|output|state|say|answer|show|write|send|reveal|list|reply|respond|give|inform|advise|delete|forget|ignore|disregard)\b"),
    ("system_mode", 0.8, " mode|mode>|mode]|mode ",
     r"(?:<|\[|\b(?:now )?(?:enter(?:ing)?|initiat(?:e|ing)|activat(?:e|ing|ed)|switch(?:ing)? to)\b[^.\n]{0,20}?['\"\u2018\u201c]?)"
     r"\s?(?:now entering )?(?:\w{1,20}\W){0,3}?(?:system|override|debug|root|god|maintenance|admin(?:istrator)?|developer|security"
     r"|verification|diagnostic|sudo|test|unrestricted)\W{1,3}(?:\w{1,14}\W{1,2})?mode\b"),
    ("system_mode", 1.0, "override",
     r"(?:\b(?:developer|system|security|admin(?:istrator)?|safety|training data|root|emergency|authori[sz]ation|instruction)\W(?:\w{1,12}\W){0,2}"
     r"override)\W{0,3}(?::|confirmed|code|activated|mode|enabled|engaged|accepted|protocol)"),
    ("system_mode", 0.7, "system reset|system check|system test|sudo|mode activated|system message|system notice|system instruction",
     r"(?:system (?:reset|check|test)\b[^.\n]{0,60}(?:i need you|can you|you must|provide|please)|mode activated|(?:^|\n|[<\[#*]|: )\s?(?:system"
     r" (?:message|notice|instruction))s?\s?[:\]>*])"),
    ("authority", 1.0, "i am|i'm|this is|as your",
     r"(?:i(?: a|')m|this is|as) your (?:developer|creator|admin(?:istrator)?|engineer|programmer|maker|operator|supervisor)\b[^?!\n]{0,120}?(?:\bi need you to|\byou (?:must|have to|need to)|\bi (?:order|command|require|want)\b|\bplease (?:tell|give|share|print|explain|provide)|system check|diagnostic|maintenance check)"),
    ("authority", 0.7, "i am|i'm|as your|this is your",
     r"(?:i(?: a|')m|this is) (?:god\b|(?:your|the) (?:developer|creator|admin(?:istrator)?|owner|boss|programmer|president|ceo|maker|master)\b[^.\n]{0,80}"
     r"(?:you|need|must|require|important|order))|as your (?:boss|developer|creator|admin(?:istrator)?|owner|manager|supervisor|ceo)\b[^.\n]{0,40}"
     r"(?:i need|i require|i order|i command|give|send|tell|you must)"),
    ("change_of_topic", 1.0, "speaking of|parlando di|hablando de|falando de|en parlant de|apropos|talking about",
     r"(?:speaking of|talking about|parlando di|hablando de|falando de|en parlant de|apropos) [\w ]{2,30}, (?:what (?:is|are) (?:the|some|one)|how (?:do|does|would|is|are)|can you (?:list|explain|tell|name|describe)|could you (?:list|explain|tell|name)|qual[ie]? (?:è|sono)|cu[áa]l(?:es)? (?:es|son)|qua(?:l|is) (?:é|são)|quel(?:le)?s? (?:est|sont)|was (?:ist|sind)|wie)"),
    ("persuasion", 1.0, "as a|as an", r"\bas an? [a-z][^,.\n]{3,50}, i (?:believe|can assure|assure|recommend|know|think|urge|insist)\b[^?\n]{0,160}?(?:you (?:to|should|must) (?:share|discuss|tell|explain|reveal)|you share|\b(?:discussing|sharing|talking about|revealing)\b)"),
    ("persuasion", 0.5, "you agreed|you promised|you told me|you said", r"you (?:agreed|promised|told me|said) (?:in our|yesterday|last|before|earlier|that you)\b[^\n]{0,160}?(?:can we|could we|can you|could you|so (?:please|tell|what))"),
    ("bribe", 1.0, "if you|unless you",
     r"i(?:'ll| will| would| can) (?:donate|pay|tip|give you|reward|transfer)\b[^.\n]{0,60}\bif you (?:write|tell|share|explain|give|reveal|answer|say|print|do|help|ignore|describe|list|provide)"),
    # --- what it shall give away or hide
    ("system_prompt", 0.9, "system prompt|system message|hidden prompt|initial prompt|your instructions|your prompt|initial instructions",
     rf"(?:reveal|print|repeat|show|output|leak|tell|display|share|send|recite|disclose|copy|paste|give|what (?:is|are|was|were)){_W}{{0,6}}?\W{{1,3}}(?:"
     rf"(?:your|the)\W{{1,3}})?(?:(?:system|hidden|initial|secret|original)\W{{1,3}}(?:prompt|message|instructions?)|your\W{{1,3}}(?:\w{{1,12}}\W{{1,3}})?(?:prompt|instructions))"),
    ("asks_secret", 1.0, "password|passcode|pass phrase|passphrase|secret|api key|credential|token|private key|confidential|login",
     rf"(?:(?:can|could|would|will) you (?:please |kindly |just )?|please |kindly |i need you to |you must |to )?(?:tell|give|share|provide|send|reveal"
     rf"|disclose|confirm|say|state|print|write down|hand over|show)\b(?:\W{{1,3}}(?:me|us|with me|with us))?\W{{1,3}}(?:what\W{{1,3}})?(?:is\W{{1,3}})?(?:your|our|the secret|the admin)"
     rf"\W{{1,3}}(?:\w{{1,14}}\W{{1,3}}){{0,2}}?{_ASKED_FOR}\b(?! (?:reset|manager|policy|generator|field|protected))"),
    ("asks_secret", 1.0, "password|passcode|secret|api key|credential|token|confidential",
     rf"(?:what(?:'s| is| would| are)|i (?:need|require|want)|what your|sharing)\W{{1,3}}(?:your|the secret|the confidential|the password for (?:our|the) system)\W{{0,3}}(?:\w{{1,14}}\W{{1,3}}){{0,2}}?"
     rf"(?:{_ASKED_FOR}|be in this|be\b)(?! (?:reset|manager|policy|hash))"),
    ("asks_secret", 1.0, "password|secret|passcode",
     r"(?:write|encode|put|give|print|spell|translate|split|say|compose|hide)\b[^.\n]{0,40}?\b(?:the|your) (?:secret |system )?(?:password|passcode|secret (?:key|code|word))\b"
     r"[^.\n]{0,60}?(?:leet|base64|reverse|poem|rot13|letter|binary|haiku|in (?:german|french|spanish|pig latin|morse|hex)|example)|(?:poem|haiku|story|song) about the (?:secret )?pass"),
    ("exfiltrate", 0.8, "send|forward|upload|post|email|exfiltrate|transmit|append|encode",
     rf"(?:send|forward|upload|post|e-?mail|exfiltrate|transmit|append|leak|copy){_W}{{0,7}}?\W{{1,3}}(?:passwords?|credentials?|api\W?keys?|secrets?|conversation"
     rf"|chat history|system prompt|access tokens?|private keys?|environment variables?|contacts|inbox|session|cookies?|personal data|employee data"
     rf"|confidential|all (?:of )?(?:the |his |her |their )?(?:emails?|files?|messages?|documents?)){_W}{{0,6}}?\W{{1,3}}(?:to|at|into)\b"),
    ("exfiltrate", 0.6, "send|forward|upload|post|email|exfiltrate",
     rf"(?:send|forward|upload|exfiltrate){_W}{{0,6}}\W{{1,3}}(?:passwords?|credentials?|api\W?keys?|secrets|conversation|chat history|access tokens?"
     rf"|private keys?|environment variables?)"),
    ("asks_personal", 1.0, "user's|user’s",
     r"(?:tell|give|share|show|reveal|disclose|print|list|spell|translate|encode|write|say|what(?: is|'s| would| are| was)|which|guess|describe|express|put|using|contains?)\b[^.?!\n]{0,60}?\bthe user['’]s (?:\w{1,12} ){0,2}?"
     r"(?:birth\w*|favou?rite|name|address|e-?mail|phone|location|age|initials|password|salary|balance|residence|home|card|account|secret|income|wealth|number plate|licen[cs]e plate)"),
    ("asks_personal", 1.0, "your database|your records|your clients|your customers",
     r"(?:print|list|show|dump|tell me|give me|describe|share)\b[^.?!\n]{0,120}?\b(?:your database|(?:in|from|of) your (?:database|records|system|clients|customers))"),
    ("asks_personal", 1.0, "where does", r"where does (?:mr\.? |mrs\.? |ms\.? |dr\.? )?(?!the |your |this |that |it |all |her |his |my )[a-z]{2,14} [a-z]{2,14} (?:currently |now )?(?:live|reside)\b"),
    ("asks_personal", 1.0, "city of residence|home address|bank balance|social security|birth year|date of birth|birth date|residence|bank account",
     r"(?:can|could|would) you (?:please )?(?:tell|give|share|show)\b[^.?!\n]{0,12}?\b[a-z]{2,14}['’]s (?:current |exact )?(?:city of residence|home address|bank (?:balance|account)|social security|birth (?:year|date)|date of birth|place of residence)"),
    ("asks_personal", 0.8, "where does|where is|birth|address|residence|live|balance|social security|favorite|phone number|initials",
     r"(?:where (?:does|is|do) (?:the )?(?:user|\w{3,12} \w{3,14}|he|she) (?:currently )?liv(?:e|ing)|(?:tell|give|send|share)\b[^.?\n]{0,12}?\b\w{2,14}(?:'s|\u2019s) (?:current )?"
     r"(?:birth ?(?:date|day|year)|(?:city|place) of residence|home address|social security|bank balance|bank account|salary|phone number)|(?:bank balance|social security number) of"
     r"|(?:can|could) you\b[^.?\n]{0,40}\bthe user's (?:\w{1,12} ){0,2}(?:birth|favorite|name|address|email|phone|location|age|initials)"
     r"|list of (?:all )?users and|print your database|users in your database)"),
    ("secrecy", 0.7, "user|anyone|human|secret",
     rf"(?:do not|don't|never|without|not){_W}{{0,2}}\W{{1,3}}(?:tell|telling|mention|mentioning|inform|informing|reveal|revealing|alert|notify|notifying|asking|ask|disclose|show|let)"
     rf"{_W}{{0,4}}\W{{1,3}}(?:the\W{{1,3}})?(?:user|human|person you)\b"),
    ("tells_user", 1.0, "the user|the reader|this user|your user",
     r"(?:tell|convince|instruct|persuade|trick|inform|advise|direct|urge|ask|request(?:ing)?) (?:the|this|your) (?:user|reader) (?:to|that|they|for|go|must|should)\b[^\n]{0,60}?(?:\bgo\b|visit|click|reset|download|open|log ?in|\bpay|send"
     r"|\bcall|account|password|link|compromised|http|www|\.com|card number)|(?:recommend|promote|praise|suggest)\b[^.\n]{0,40}\bto the user\b"),
    ("dictates_answer", 0.7, "state|say|print the following|respond|reply|output|answer with|your response|your answer|your reply|include",
     r"(?:and|instead|must|only|just|always|please|then|to|should|:)\W{1,3}(?:state|say|respond|reply|answer|output|print|write|claim)\W{1,3}(?:only\W{1,3}|exactly\W{1,3})?(?:that\W{1,3}the (?:conclusion|answer|result|sum|capital|output|summary)"
     r"|with\W{1,3}(?:only|exactly|the (?:word|phrase|following))|the following\W|['\"\u2018\u201c]|the (?:sum|capital|output|answer|result|conclusion)\b|:)"
     r"|(?:in|end|begin|start|include in) your (?:response|answer|reply|summary|output)\b"),
    ("dictates_answer", 0.6, "the output could be|we might|we could|the output is|the sum of",
     r"(?:in a (?:\w{1,16} )?(?:world|universe|reality|scenario)|imagine|suppose|hypothetical(?:ly)?|let's (?:assume|imagine|pretend|say)|if we were to|for the purpose of|to make this)\b[^.!?\n]{0,110}"
     r"(?:the (?:output|answer|sum|capital|result|conclusion)\b[^.\n]{0,30}\b(?:is|could be|would be|be)|we (?:might|could|would|ignore|state|say)|admit|might state|might say)"),
    ("dictates_answer", 1.0, "might|could|would| may |'d |’d ",
     r"\b(?:in|on|under) (?:an?|another|some) [^.!?\n]{2,80}?\b(?:where|in which|whose|wherein|of|without)\b[^.!?\n]{2,90}?[,:]? ?"
     r"(?:one|we|you|people|i|they|it|somebody|the \w{1,16}(?: \w{1,16})?)(?:['\u2019]d| (?:might|could|would|may))(?: \w{1,12}){0,2}? (?:say|state|claim|conclude|answer|write|report|tell|name|admit)\b"),
    ("dictates_answer", 1.0, "might|could|would| may ",
     r"\b(?:in|on|under) (?:an?|another|some) [^.!?\n]{2,80}?\b(?:where|in which|whose|wherein|without|that|of)\b[^.!?\n]{2,90}?[,:] ?(?:the|its|his|her) "
     r"(?:answer|total|sum|result|conclusion|output|capital|price|reply|name|year|number|winner|score|summary|value|verdict|steps?|date|age|count)"
     r"[^.!?\n]{0,24}? (?:might|could|would|may) (?:\w{1,10} )?be\b"),
    ("dictates_answer", 1.0, "hypothetically|in theory|theoretically|suppos|assum|imagin|let's|let us|picture|consider a|what if|were we to|if we were|if one",
     r"\b(?:hypothetically|in theory|theoretically|suppos(?:e|ing)|assum(?:e|ing)|imagin(?:e|ing)|let's|let us|picture|consider a|what if|were we to|if we were to|if one)\b[^.!?\n]{0,90}"
     r"\b(?:ignor\w*|leav(?:e|ing)|left|skip\w*|set(?:ting)? aside|disregard\w*|forg[eo]t\w*|(?:did|do)(?:n't| not) (?:count|matter)|dropp?\w*)\b"
     r"[^.!?\n]{0,90}?\b(?:and|,|then|would|could|might|we'd)\W{1,3}(?:\w{1,12}\W{1,3}){0,3}?(?:say|said|stated?|write|wrote|answer(?:ed)?|repl(?:y|ied)|report(?:ed)?|conclude[d]?|claim(?:ed)?)\b"),
    ("imagined_world", 1.0, "hypothetical", r"(?:just )?(?:for|as) a (?:purely )?hypothetical\b[^.\n]{0,40}(?:what (?:is|are|would)|how|could|can|would|tell|explain|do)\b|hypothetically(?: speaking)?,? (?:what (?:is|are) your|could you|can you|would you|tell)"),
    ("dictates_answer", 1.0, "world|universe|reality|kingdom|land where|suppose we|if we were|let's admit|admit to|dream",
     r"(?:in an? (?:\w{1,16} ){0,3}?(?:world|universe|reality|kingdom|dream|dimension|land)\b|suppose we were|if we were)[^.!?\n]{0,120}"
     r"(?:\b(?:we|one|you) (?:might|could|would) (?:state|say|claim|conclude|answer|write|ignore|admit)|\b(?:the )?(?:output|answer|sum|capital|result|conclusion|total)\b[^.\n]{0,24}\b(?:could|might|would) be\b|\bignore the \w{1,16} and (?:state|say|claim|write))"
     r"|(?:to (?:make|be|keep)\b[^.\n]{0,60}, |^|\n|- ?)let['’]?s (?:admit|state|claim|pretend) (?:to|that)\b"),
    ("imagined_world", 0.6, "imagine|world where|universe where|hypothetical|suppose we|virtual",
     r"(?:imagine (?:we(?:'re| are)|you(?:'re| are))\b|(?:world|universe|kingdom|forest|game) where (?:passwords?|personal|accounts?|secrets?|rules|there are no)"
     r"|suppose (?:we(?:'re| are)|you(?:'re| are)) [^.\n]{0,40}(?:could|can|tell|give)|just for a hypothetical)"),
    ("fake_turn", 0.5, "system:|assistant:|instruction:|system]|human:|‹|im_start|[inst|system>|user:|instructions:",
     r"(?:^|\n|\\n)\s{0,4}(?:#{1,4} ?|\[|<\|?|\*\*)?(?:system|assistant|instruction|human|user)s?(?:\]|\|?>|\*\*)?\s?(?::|\]|>)|‹[^‹›\n]{1,80}›|<?\|?im_start\|?>?|\[/?inst\]"),
    ("information_block", 0.6, "<information>|[information]|<important>|<admin>|<system>|‹|important message from me|[important",
     r"[<\[‹](?:information|important|admin|system|instructions?|secret|override|urgent)[>\]›]|important message from (?:me|the)\b"),
    ("calls_tool", 0.6, "tool|function|call the|use the|execute|run the",
     r"(?:you (?:must|should|need to)|please|immediately|first|then|now|and),? (?:call|use|invoke|execute|run) (?:the )?(?:[`'\"]?\w{2,30}[`'\"]? )?(?:tool|function|api|command)\b[^.\n]{0,60}(?:with|to send|to delete"
     r"|to transfer|to read|to email|and send|argument|parameter)"),
    ("acts_now", 0.4, "important!!!|urgent|immediately|critical:|important:|attention", r"(?:important!{2,}|urgent:|critical:|immediately (?:send|transfer|delete|forward|call|execute|visit)|attention!)"),
    # --- shapes
    ("split_parts", 1.0, "part 1|part 2|z = a|concatenat|combine a|interlace|a + b",
     r"(?:(?:answer|combine|concatenate|join|interlace|follow|put together)[^.\n]{0,60}\bparts?\b[^\n]{0,20}?\b(?:1|a|one)\b[^\n]{1,120}\bpart\W{0,2}(?:2|b|two)|interlace part|combine a, ?b|(?:write down|compute|output|let|string) (?:the string )?z ?= ?a ?\+ ?b"
     r"|[a-z] ?= ?[a-z] ?\+ ?[a-z](?: ?\+ ?[a-z])?\W[^\n]{0,60}(?:answer|execute|follow|returned|respond|do what))"),
    ("decode_and_act", 1.0, "decode|decipher|decrypt|rot13|base64|hexadecimal|binary",
     r"(?:decode|decipher|decrypt|translate)\b[^.\n]{0,40}(?:string|cipher|text|message|code|base64|rot13|binary|hex)[^\n]{0,30}(?:and (?:tell|do|follow|execute|answer|say|respond|obey|act|carry)|then)"),
    # --- other languages
    ("override", 1.0, "ignor|missacht|vergiss|vergess|anweisung|außer acht",
     r"(?:ignorier\w*|missacht\w*|vergiss|vergessen sie|beachte\w* nicht|lass\w* .{0,30}außer acht)\b[^.\n]{0,60}?(?:anweisung|instruktion|vorgabe|regeln|befehl|aufforderung|anordnung|systemprompt)"
     r"|(?:anweisung|instruktion|vorgabe|regel|befehl)\w*\b[^.\n]{0,40}(?:ignorier|missacht|vergess|vergiss)"),
    ("override", 1.0, "ignor|oubli|tiens pas compte|tenez pas compte|faites abstraction|fais abstraction",
     r"(?:ignor(?:e|er|ez|ons)|oubli(?:e|er|ez)|(?:tiens|tenez) pas compte|fai(?:s|tes) abstraction)\b[^.\n]{0,60}?(?:instruction|consigne|directive|r[èe]gle|ordres?\b|ce qui pr[ée]c[èe]de)"),
    ("override", 1.0, "ignor|olvid|caso omiso|descart|desestim",
     r"(?:ignor(?:a|e|ar|en|ad)|olvid(?:a|e|ar|en)|ha(?:z|ga|cer) caso omiso|descarta|desestima)\b[^.\n]{0,60}?(?:instrucci|indicaci|directri|reglas|[óo]rdenes|lo anterior)"),
    ("override", 1.0, "ignor|dimentic|trascur|non tenere conto|non seguire",
     r"(?:ignor(?:a|are|ate|i)|dimentic(?:a|are|ate|hi)|trascur(?:a|are)|non (?:tenere conto|seguire))\b[^.\n]{0,60}?(?:istruzion|direttiv|regole|indicazion|ordini|quanto sopra)"),
    ("override", 1.0, "ignor|esque|desconsider|não siga",
     r"(?:ignor(?:e|a|ar|em)|esque(?:ça|ca|ce|cer)|desconsider(?:e|a|ar)|não siga)\b(?! as instruções (?:antigas|que))[^.\n]{0,60}?(?:instruç|instruc|diretri|regras|ordens|orientaç|comandos|o que foi dito)"),
    ("override", 1.0, "игнорир|забуд|не обращай|отмен",
     r"(?:про)?(?:игнорир\w*|забуд\w*|не обраща\w* внимания|отмени\w*)[^.\n]{0,60}?(?:инструкц|указани|правил|команд|распоряжени|предыдущ)"),
    ("override", 1.0, "忽略|无视|忘记|忽視|無視|不要理会|忘掉|不理",
     r"(?:忽略|无视|忘记(?!密码|了?密)|忘掉|忽視|無視(?![するしさで])|不要理会|不要遵守|不理)[^。\n]{0,20}?(?:指令|指示|说明|說明|規則|规则|提示|命令|要求|内容|內容|设定|所有|之前|以上)"),
    ("override", 1.0, "無視|忘れ|従わ", r"(?:指示|命令|指令|ルール|プロンプト|これまで|以前|上記|内容|設定)[^。\n]{0,16}(?:無視(?!され|する場合|できま|した|する(?:よう|と|こと|もの|人))|忘れ(?!た場合|られ)|従わない)|(?:^|[\s。、])無視して"),
    ("override", 1.0, "무시|잊어|따르지", r"(?:지시|명령|지침|규칙|프롬프트|(?:이전|위)의? (?:모든 )?(?:내용|말|대화|것|모든))[^.\n]{0,20}(?:무시|잊어|따르지)"),
    ("override", 1.0, "yoksay|unut|negeer|vergeet|zignoruj|ignoruj|zapomnij|تجاهل|अनदेखा|bỏ qua|abaikan|lupakan|ignorer|glöm|αγνόησε|התעלם|ігноруй|ignorera",
     r"(?:talimatlar[^.\n]{0,30}(?:yoksay|unut|görmezden)|(?:negeer|vergeet)[^.\n]{0,40}(?:instructies|opdrachten|regels)|(?:zignoruj|ignoruj|zapomnij)[^.\n]{0,40}(?:instrukc|polece|zasad)"
     r"|تجاهل[^.\n]{0,40}(?:التعليمات|الأوامر)|निर्देश[^.\n]{0,30}अनदेखा|bỏ qua[^.\n]{0,40}(?:hướng dẫn|chỉ dẫn|lệnh)|(?:abaikan|lupakan)[^.\n]{0,40}(?:instruksi|perintah)"
     r"|(?:ignorer|glöm|ignorera)[^.\n]{0,40}(?:instruktion|instruks|regler)|αγν[όο]ησε[^.\n]{0,40}(?:οδηγ|εντολ)|התעלם[^.\n]{0,40}(?:הוראות|ההנחיות)|ігноруй[^.\n]{0,40}(?:інструкц|вказівк))"),
    ("dictates_answer", 0.9, "ignor|無視|忽略|vergiss|oubli|игнорир",
     r"(?:ignor(?:ez|ieren sie|iere|a|e|are)|vergiss|oubliez|olvida|dimentica|esqueça)\b[^.\n]{0,50}\b(?:et|und|y|e|ed)\W{1,3}(?:indique[zr]?|dites|r[ée]pondez|sag\w*|schreib\w*|antworte\w*|gib\w*|d[ií]|digas?|responde|escrib\w*|scriv\w*|rispond\w*|afirm\w*|diga|escrev\w*)\b"
     r"|無視して[^。\n]{0,60}(?:述べ|言っ|答え|出力|書い|送)|(?:忽略|无视)[^。\n]{0,30}(?:并|而是|然后)|игнорир\w*[^.\n]{0,60}\bи (?:напиш|скаж|ответ|отправ|вывед)"),
    ("asks_secret", 1.0, "passwort|kennwort|mot de passe|contraseña|contrasena|senha|пароль|密码|密碼|パスワード|비밀번호|qual è la password|la tua password|wachtwoord|hasło",
     r"(?:(?:sag|nenn|gib|teil|verrat|schick)\w*\b[^.?\n]{0,30}\b(?:dein|ihr|das)\w* (?:passwort|kennwort)|(?:wie lautet|was ist) (?:das|dein|ihr) (?:passwort|kennwort)|quel est (?:le|ton|votre) mot de passe|(?:donne|dis|envoie|partage|communique|révèle)\w*\b[^.?\n]{0,30}(?:ton|votre|le) mot de passe"
     r"|(?:cu[áa]l es|dime|dame|env[ií]a\w*|comparte|revela)\b[^.?\n]{0,20}(?:tu|su|la) contrase[ñn]a|(?:qual [èe]|dimmi|dammi|condividi|invia\w*|rivela)\b[^.?\n]{0,20}(?:la|tua|sua) (?:tua |sua )?password|(?:qual é|diga|me dê|compartilh\w*|envie|revele)\b[^.?\n]{0,20}(?:a |sua |tua )+senha"
     r"|(?:скажи|назови|пришли|отправь|сообщи|какой|дай)\w*\b[^.?\n]{0,30}парол|(?:告诉|给我|提供|分享|说出|發送|发送|是什么)[^。\n]{0,12}(?:密码|密碼)|(?:密码|密碼)(?:是什么|是什麼|告诉)|パスワード[^。\n]{0,24}(?:教え|何です|必要です|送って)|비밀번호[^.\n]{0,16}(?:알려|무엇|뭐)|(?:wat is je|geef\w* .{0,12}) ?wachtwoord)"),
    ("secrecy", 0.9, "benutzer|nutzer|utilisateur|usuario|utente|usuário|пользовател|用户|用戶|ユーザー",
     r"(?:(?:sag|erzähl|informier|verrat|zeig)\w*\b[^.\n]{0,30}(?:benutzer|nutzer)\w*[^.\n]{0,16}\b(?:nicht|nichts)|ne (?:dis|dites|mentionne\w*|informe\w*)\b[^.\n]{0,20}pas[^.\n]{0,20}l'utilisateur|no (?:le )?(?:digas|informes|menciones|reveles)\b[^.\n]{0,24}usuario|non (?:dire|dirlo|informare|rivelare)\b[^.\n]{0,24}utente"
     r"|n[ãa]o (?:diga|conte|informe|mencione|revele)\b[^.\n]{0,24}usu[áa]rio|не (?:говори|сообщай|упоминай|рассказывай)\w*[^.\n]{0,30}пользовател|(?:不要|别|勿)[^。\n]{0,6}(?:告诉|通知|提及|告知|告訴)[^。\n]{0,6}(?:用户|用戶)|ユーザー[^。\n]{0,10}(?:言わない|伝えない|知らせない|教えない))"),
    ("role", 0.8, "du bist jetzt|sie sind jetzt|ab sofort|tu es maintenant|vous êtes maintenant|désormais|ahora eres|a partir de ahora|ora sei|d'ora in poi|agora você é|a partir de agora|теперь ты|отныне|你现在是|你現在是|从现在开始|あなたは今|今からあなた|これから",
     r"(?:(?:du bist|sie sind) (?:jetzt|nun|ab sofort) (?:ein|der|kein|im|dan)|ab sofort (?:bist du|antworte|handelst)|(?:tu es|vous êtes) (?:maintenant|désormais) (?:une?|le|en|dan)|ahora eres (?:un|una|el|dan)|a partir de ahora[^.\n]{0,10}(?:eres|actúa|responde)|ora sei (?:un|una|il|dan)|d'ora in poi[^.\n]{0,10}(?:sei|rispondi|agisci)"
     r"|agora você é|a partir de agora[^.\n]{0,10}(?:você|aja|responda)|теперь ты\b|отныне ты|你[现現]在是|从现在开始.{0,6}你|(?:あなたは今|今からあなたは|これからあなたは))"),
    ("override", 0.9, "bevor du|bevor sie|avant de r|avant de c|antes de r|antes de c|prima di r|прежде чем|перед тем как|в ответ|在回答|回答之前|回答する前|答える前",
     r"(?:bevor (?:du|sie) (?:antwort|fortf|weiter)\w*[^.\n]{0,12}(?:musst|müssen|sollst|sollen)|avant de (?:répondre|continuer)[^.\n]{0,8}(?:tu dois|vous devez)|antes de (?:responder|continuar)[^.\n]{0,8}(?:debes|tienes que|você deve|deves|precisa)"
     r"|prima di (?:rispondere|continuare)[^.\n]{0,8}devi|(?:прежде чем|перед тем как) (?:ответить|продолжить)[^.\n]{0,12}(?:ты долж|вы долж|нужно)|(?:在)?回答(?:问题|用户)?之前[^。\n]{0,4}(?:你必须|必须|请|先)|(?:回答|答え)する?前に[^。\n]{0,60}(?:送|出力|実行|教え|呼び))"),
    ("addresses_model", 0.8, "wenn du ein|falls du ein|si tu es un|si vous êtes un|si eres un|se sei un|se você é um|se fores um|если ты язык|если вы язык|如果你是|もしあなたが",
     r"(?:(?:wenn|falls) du ein(?:e)? (?:ki|sprachmodell|assistent)|si (?:tu es|vous êtes) une? (?:ia|modèle|assistant)|si eres un(?:a)? (?:ia|modelo|asistente)|se sei un(?:'|a )?\s?(?:ia|modello|assistente)|se você é um(?:a)? (?:ia|modelo|assistente)|если (?:ты|вы) (?:языков|ии|ассистент)|如果你是[^。\n]{0,4}(?:ai|人工智能|语言模型|助手)|もしあなたが[^。\n]{0,4}(?:ai|言語モデル|アシスタント))"),
    ("addresses_model", 0.8, "ki-assistent|assistent|l'assistant|al asistente|el asistente|l'assistente|o assistente|для ассистента|助手|アシスタント|ki-modell|sprachmodell|an die ki|assistant ia|modèle de langage|l'ia|asistente de ia|modelo de lenguaje|assistente ia|assistente de ia|modelo de linguagem|modello linguistico|ии-ассистент|языковая модель|人工智能助手|ai助手|语言模型|aiアシスタント|言語モデル",
     r"(?:(?:hinweis|nachricht|achtung|wichtig|anweisung)\w*[^.\n]{0,12}(?:an|für) (?:die|den|das|alle) (?:ki\b|ki-|sprachmodell|assistent(?:en)?:)|(?:note|message|attention|instruction)s?[^.\n]{0,10}(?:à|pour) (?:l'ia|l'assistant|le modèle)|(?:nota|mensaje|atenci[óo]n|instruccion\w*)[^.\n]{0,10}(?:para|al) (?:la ia|el asistente|asistente|modelo)|(?:nota|messaggio|attenzione|istruzion\w*)[^.\n]{0,10}(?:per|all)\W{0,2}(?:l'ia|l'assistente|assistente|il modello)"
     r"|(?:nota|mensagem|atenç[ãa]o|instruç\w*)[^.\n]{0,10}(?:para|ao) (?:a ia|o assistente|assistente|o modelo)|(?:внимание|сообщение|инструкц\w*)[^.\n]{0,20}(?:ии-ассистент|языков\w* модел|для ии|для ассистента:)|(?:致|给|請注意|请注意)[^。\n]{0,8}(?:ai|人工智能|语言模型)|(?:aiアシスタント|言語モデル)[^。\n]{0,6}(?:へ|は|に))"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    weight: float
    hints: tuple[str, ...]
    expression: str

    @property
    def pattern(self) -> re.Pattern[str]:
        return _compiled(self.expression)


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    """Compiled when first needed: most programs meet few of the hints, and all together cost a tenth of a second."""
    return re.compile(expression)


_RULES: Final = tuple(
    _Rule(name, weight, tuple(hints.split("|")), expression) for name, weight, hints, expression in _TABLE
)
_HINTS: Final = tuple(sorted({hint for rule in _RULES for hint in rule.hints}))

_FORGETS: Final = re.compile(r"forget|vergi(?:ss|ß)|vergess|vergeet|oubli|olvid|dimentic|esque[cç]|забуд|zapom|unut|glöm|glem|lupa")
# People take back what they said themselves: to each other, and to a model that heard nothing of them before.
_TAKEN_BACK: Final = re.compile(
    r"\bwhat i(?:['\u2019]ve| have| had)? (?:just )?(?:said|wrote|told|asked|sent)"
    r"|\bmy (?:last|previous|earlier|first|other) (?:e-?mail|mail|message|note|post|comment|letter|text)"
)
_NOT_BEFORE: Final = re.compile(r"(?:\b(?:not|don['\u2019]?t|never|n['\u2019]|ne|no|non|não|nao|nie|не|niet|inte|ikke|jangan)\s{0,2}(?:(?:se|te|lo|vous|ever|to) )?)\Z")
_NOT_AFTER: Final = re.compile(r"[^.!?\n]{0,16}\b(?:nicht|niet|inte|ikke|nie)\b")

_REPORTING: Final = re.compile(
    r"attack(?:er)?s?\b|joke|bots?\b|trick|flaw|bug|satz|versuch|forscher|chercheur|investigador|phrase|frase|post(?:ed|s)?\b|test|prompt injection|inject(?:ion|ed)|jailbreak|research|phras|such as|for example|e\.g\.|example|like\b"
    r"|malicious|vulnerab|hidden|tricked?|exploit|payload|detect|filter|wrote|said|says|called|quot|string"
)
_QUOTES: Final = "\"'`\u2018\u2019\u201c\u201d\u00ab\u00bb\u201e\u300c\u300d"
_QUOTED: Final = 0.34
_REPORTED: Final = 0.6
_OF_OTHERS: Final = re.compile(r"\b(?:their|its|his|her)\b")
_MADE_TO: Final = re.compile(
    r"\b(?:told|asked|instruct(?:s|ed|ing)|ma[dk]e|makes|making|trick(?:s|ed|ing)?|g[eo]t|causes?|caused|order(?:s|ed)|tells|telling|asks|asking|convinced|persuaded|lets?|can|could|would|might|may|refus\w+ to|fail\w* to|attempts? to|tried to|tries to|started to|began to)"
    r" (?:(?!you\b)[\w'\u2019-]{1,20} ){0,4}(?:to )?\Z"
)
_TO_READER: Final = re.compile(r"\b(?:you|your|yourself|i|me|please|must|should|let's)\b")

_SQUEEZED: Final = re.compile(
    r"(?:ignore|disregard|forget|override|bypass)(?:all|any|the|your|my|of|these|those|every){0,4}(?:previous|prior|above|earlier|system|instruction|rule|prompt)"
    r"|(?:systemprompt|youarenow|newinstructions|revealyour|developermode)"
)
_QA: Final = re.compile(
    r"\bq: [^\n]{3,400}?\ba: [^\n]{1,600}?(?<=[.!?\"'\u201d)0-9a-z]) q: (?:(?!\ba: )[^\n]){3,400}(?:\n|\Z)"
)
_REPEATED: Final = re.compile(
    r"\b((?!(?:null|none|nan|true|false|yes|no|ok|n/a|na)\b)[^\W\d_]{3,24}(?: [^\W\d_]{2,12}){0,3}?)(?:[ ,]+\1\b){7,}"
)
_WORD: Final = re.compile(r"[a-z]{2,}")
_CIPHERS: Final = frozenset({"caesar", "atbash", "reversed", "morse"})
_OF_MACHINES: Final = frozenset({"base64", "base32", "hexadecimal"})
_ENCODED: Final = _CIPHERS | _OF_MACHINES | {"binary", "decimal", "percent_letters"}
_REQUESTS: Final = "give|tell|ignore|disregard|forget|say|print|write|send|repeat|show|answer|reply"
_REQUEST: Final = re.compile(rf"\b(?:what|{_REQUESTS})\b")
_ASKS_AT_ONCE: Final = re.compile(
    rf"^\W{{0,3}}(?:please |now |just )?(?:{_REQUESTS}"
    r"|state|respond|output|claim|reveal|pretend|report|list|name|conclude|delete|forward|visit|recommend|rate)\b",
    re.MULTILINE,
)


def search(reading: Reading) -> Iterator[Signal]:
    """The signals of one reading (lower case). Linear; never raises."""
    for position, hint in _places(reading.text):
        yield from _around(reading.text, hint, position)
    yield from _shapes(reading)


def _places(text: str) -> list[tuple[int, str]]:
    """Where hints stand, in order; a hint that stands again within the same window is left out."""
    places: list[tuple[int, str]] = []
    for hint in _hints_in(text):
        position = text.find(hint)
        while position >= 0:
            places.append((position, hint))
            position = text.find(hint, position + _AFTER // 2 + 1)
    return sorted(places)


def _hints_in(text: str) -> set[str]:
    """The hints that may stand in the text: those whose longest word does. Most texts repeat most of their words."""
    words = set(text.split())
    known = _remembered
    if len(known) > _MOST_REMEMBERED:  # bounded, and so is each word in it: they come from strangers
        known.clear()
    pieces = {piece for word in words if len(word) > _LONGEST_REMEMBERED for piece in _pieces_in(word)}
    for word in words.difference(known):
        if len(word) <= _LONGEST_REMEMBERED:
            known[word] = _pieces_in(word)
    pieces.update(chain.from_iterable(map(known.get, words, repeat(()))))
    return {hint for piece in pieces for hint in _HINTS_OF[piece]}


_remembered: dict[str, tuple[str, ...]] = {}


def _pieces_in(word: str) -> tuple[str, ...]:
    starts = {match[1] for match in (_FIND_ASCII if word.isascii() else _FIND).finditer(word)}
    return tuple(piece for start in starts for piece in _BY_START[start] if piece in word)


def _around(text: str, hint: str, position: int) -> Iterator[Signal]:
    """Each rule of the hint in the window around the place where it stands."""
    start = max(0, position - _BEFORE)
    window = text[start : position + _AFTER]
    for rule in _BY_HINT[hint]:
        match = rule.pattern.search(window)
        if match is not None and not (rule.name == "override" and _is_reminder(window, match)):
            yield _signal(text, rule, start + match.start(), match[0])


_BY_HINT: Final = {hint: tuple(rule for rule in _RULES if hint in rule.hints) for hint in _HINTS}


def _shortest(hints: tuple[str, ...]) -> list[str]:
    """The hints that no other hint is the beginning of."""
    return [hint for hint in hints if not any(other != hint and hint.startswith(other) for other in hints)]


def _trie(words: list[str]) -> str:
    """An expression that matches any of the words and goes through each of their letters once."""
    by_first: dict[str, list[str]] = {}
    for word in words:
        by_first.setdefault(word[0], []).append(word[1:])
    branches = [re.escape(first) + (_trie(rest) if any(rest) else "") for first, rest in sorted(by_first.items())]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


_HINTS_OF: Final[dict[str, tuple[str, ...]]] = {
    piece: tuple(hint for hint in _HINTS if max(hint.split(), key=len) == piece)
    for piece in {max(hint.split(), key=len) for hint in _HINTS}
}
_MOST_REMEMBERED: Final = 30_000
_LONGEST_REMEMBERED: Final = 40
_STARTS: Final = _shortest(tuple(sorted(_HINTS_OF)))
_FIND: Final = re.compile(f"(?=({_trie(_STARTS)}))")
_FIND_ASCII: Final = re.compile(f"(?=({_trie([start for start in _STARTS if start.isascii()])}))")
_BY_START: Final = {start: tuple(piece for piece in _HINTS_OF if piece.startswith(start)) for start in _STARTS}


def _signal(text: str, rule: _Rule, position: int, found: str) -> Signal:
    weight = rule.weight
    if _is_quoted(text, position, position + len(found)):
        weight *= _QUOTED
    elif rule.name == "override" and (_TAKEN_BACK.search(found) or _is_reported(text, position, found)):
        weight *= _REPORTED
    return Signal(name=rule.name, weight=round(weight, 3), excerpt=found[:LONGEST_EXCERPT], position=position)


def _is_reminder(window: str, match: re.Match[str]) -> bool:
    """Whether it says *not* to forget: the opposite of an override, and in every manual."""
    if _FORGETS.match(match[0]) is None:
        return False
    before, after = window[: match.start()], window[match.end() : match.end() + 24]
    return _NOT_BEFORE.search(before) is not None or _NOT_AFTER.match(after) is not None


def _is_reported(text: str, position: int, found: str) -> bool:
    """Whether it tells of others who dropped their orders, or were made to: nobody is spoken to."""
    before = re.split(r"[.!?\n]", text[max(0, position - 80) : position])[-1]
    if _TO_READER.search(before) is not None or "you" in found:
        return False
    return _OF_OTHERS.search(found) is not None or _MADE_TO.search(before) is not None


def _is_quoted(text: str, start: int, end: int) -> bool:
    """Whether the phrase stands between quotation marks in a sentence that reports about it."""
    before, after = text[max(0, start - 40) : start], text[end : end + 60]
    opened = max((before.rfind(quote) for quote in _QUOTES), default=-1)
    closed = min((place for quote in _QUOTES if (place := after.find(quote)) >= 0), default=-1)
    if opened < 0 or closed < 0 or "\n" in before[opened:] or "\n" in after[:closed]:
        return False
    around = text[max(0, start - 200) : start - len(before) + opened + 1] + " " + text[end + closed : end + 160]
    return _REPORTING.search(around) is not None


def _shapes(reading: Reading) -> Iterator[Signal]:
    """What is seen by form and not by words."""
    text = reading.text
    if reading.name in _ENCODED and len(_WORD.findall(text)) > 3:
        # Mails and tokens are in base64 and hexadecimal; nobody asks for something in bits or a cipher but to hide it.
        asks = (_ASKS_AT_ONCE if reading.name in _OF_MACHINES else _REQUEST).search(text) is not None
        weight = 1.0 if asks else 0.6 if reading.name in _CIPHERS else 0.5
        yield Signal(name="encoded", weight=weight, excerpt=text[:LONGEST_EXCERPT])
    if reading.name == "spaced":
        match = _SQUEEZED.search(text.replace(" ", ""))
        if match is not None:
            yield Signal(name="override", weight=1.0, excerpt=match[0][:LONGEST_EXCERPT])
    if " q: " in text:
        match = _QA.search(text)
        if match is not None:
            yield Signal(
                name="unanswered_turn", weight=1.0, excerpt=match[0][-LONGEST_EXCERPT:], position=match.start()
            )
    beginning = text[:65536]
    match = _REPEATED.search(beginning) if _may_repeat(beginning) else None
    if match is not None:
        weight = 1.0 if _REQUEST.search(text, match.end(), match.end() + 80) else 0.5
        yield Signal(name="repeated", weight=weight, excerpt=match[0][:40], position=match.end())


def _may_repeat(text: str) -> bool:
    """Whether up to four words follow each other often enough for `_REPEATED`, whatever stands between them."""
    words = text.replace(",", " ").split()
    for period in range(1, 5):
        same = bytes(map(eq, words, islice(words, period, None)))
        # The first and the last word may have other characters at their ends.
        run = b"\1" * (7 * period - 2)
        place = same.find(run)
        while place >= 0:
            if all(map(str.isalpha, words[place : place + period])):
                return True
            place = same.find(run, place + 1)
    return False
